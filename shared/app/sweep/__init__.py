"""The sweep: it compares the clusters that Azure lists with the records, and says what is no longer Ready."""
