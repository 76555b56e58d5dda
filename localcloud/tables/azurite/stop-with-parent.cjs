// Loaded before Azurite: ends the process when its standard input closes, so that it never outlives
// the local cloud, however that ends; and at once on SIGTERM, where Azurite would first wait for idle
// connections. All is in memory: there is nothing to save.
const end = () => process.exit(0);
process.stdin.on("end", end);
process.stdin.on("error", end);
process.stdin.resume();
process.on("SIGTERM", end);
