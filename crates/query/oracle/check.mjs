// Asks Microsoft's own parser of KQL what it says of each query, over the tables that Narrows has.
//
//   node check.mjs MODULE TABLES FILE…
//
// MODULE is the folder of the installed package; TABLES is a file with one table a line, `name(column:type, …)`. For each
// FILE, one line of JSON: its name, the columns and types of what it gives, and the errors with their places.

import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const [folder, tables, ...files] = process.argv.slice(2);
for (const script of ['bridge.min.js', 'Kusto.Language.Bridge.min.js']) {
  vm.runInThisContext(fs.readFileSync(path.join(folder, script), 'utf8'), { filename: script });
}
const { Language } = globalThis.Kusto;
const { Symbols } = Language;

const lines = fs.readFileSync(tables, 'utf8').split('\n').filter((line) => line !== '');
const known = lines.map((line) => {
  const name = line.slice(0, line.indexOf('('));
  return Symbols.TableSymbol.From(line.slice(name.length)).WithName(name);
});
const globals = Language.GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor('run', known));

function listed(list, of) {
  const items = [];
  for (let at = 0; list && at < list.Count; at += 1) {
    items.push(of(list.getItem(at)));
  }
  return items;
}

for (const file of files) {
  const code = Language.KustoCode.ParseAndAnalyze(fs.readFileSync(file, 'utf8'), globals);
  const errors = listed(code.GetDiagnostics(), (it) => it)
    .filter((it) => it.Severity === 'Error')
    .map((it) => `${it.Start}: ${it.Message}`);
  const columns = listed(code.ResultType?.Columns, (it) => `${it.Name}:${it.Type.Name}`);
  console.log(JSON.stringify({ file: path.basename(file), columns, errors }));
}
