// Loaded before Azurite: two libraries that it loads and does not use here, which take a third of its start.
// Telemetry is switched off, and what is stored is in memory, not in an SQL database.
const Module = require("module");
const unused = { applicationinsights: {}, sequelize: { Model: class {} } };
const load = Module._load;
Module._load = (name, ...rest) => unused[name] ?? load(name, ...rest);
