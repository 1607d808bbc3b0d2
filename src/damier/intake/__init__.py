"""Whatever the user has, turned into columns, codes and counts."""
