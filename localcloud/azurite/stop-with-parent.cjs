// Loaded before Azurite: ends the process when its standard input closes, so that it never outlives
// the local cloud, however that ends.
process.stdin.on("end", () => process.exit(0));
process.stdin.on("error", () => process.exit(0));
process.stdin.resume();
