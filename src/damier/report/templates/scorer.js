// a row to try
