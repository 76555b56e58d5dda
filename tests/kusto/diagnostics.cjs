// Reads queries, one JSON array of strings, and writes what Kusto's language service says of each.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = path.join(process.argv[2], "node_modules", "@kusto", "language-service-next");
for (const name of ["bridge.min.js", "Kusto.Language.Bridge.min.js"]) {
  vm.runInThisContext(fs.readFileSync(path.join(folder, name), "utf8"), { filename: name });
}
const { GlobalState, KustoCode, Symbols } = Kusto.Language;
// The table of Application Insights for metrics (learn.microsoft.com/azure/azure-monitor/reference/tables/appmetrics).
const columns =
  "timestamp: datetime, name: string, value: real, valueCount: int, valueSum: real, valueMin: real, valueMax: real, " +
  "customDimensions: dynamic, cloud_RoleName: string";
const table = new Symbols.TableSymbol.$ctor7("customMetrics", `(${columns})`, null);
const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor("application", [table]));
const queries = JSON.parse(fs.readFileSync(0, "utf8"));
const found = queries.map((query) => {
  const said = KustoCode.ParseAndAnalyze(query, globals).GetDiagnostics();
  const count = System.Linq.Enumerable.from(said).count();
  return Array.from({ length: count }, (_, index) => System.Array.getItem(said, index).Message);
});
process.stdout.write(JSON.stringify(found));
