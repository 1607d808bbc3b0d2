// the rules of the grid
