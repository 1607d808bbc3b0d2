// the matrix of pairs
