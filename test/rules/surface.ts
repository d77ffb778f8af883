// The names a user can import, as the compiler sees them.
//
//   npm run surface               compares them with the checked-in list
//   npm run surface -- --write    writes the list
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { ROOT } from "../fixtures/repository.ts";

/** Subpath of the package → its names, sorted; a name that is only a type says so. */
export type Surface = Readonly<Record<string, readonly string[]>>;

const LIST = join(ROOT, "test/rules/surface.json");

/** What `exports` of the package leads to, in the sources. */
function entries(): ReadonlyMap<string, string> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const found = new Map<string, string>();
  for (const [subpath, target] of Object.entries<{ default?: string }>(exports)) {
    if (target.default === undefined) continue;
    found.set(subpath, target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts"));
  }
  return found;
}

export function surface(): Surface {
  const { files, program, checker } = read();
  return Object.fromEntries([...files].map(([subpath, file]) => [subpath, namesOf(checker, program, file)]));
}

/** The doc comments of every public name and of its members. */
export function publicComments(): readonly { readonly where: string; readonly text: string }[] {
  const { files, program, checker } = read();
  const found = new Map<ts.Symbol, { readonly where: string; readonly text: string }>();
  const add = (symbol: ts.Symbol): void => {
    const origin = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    if (found.has(origin)) return;
    const where = `${origin.declarations?.[0]?.getSourceFile().fileName.slice(ROOT.length + 1)} ${origin.name}`;
    found.set(origin, { where, text: ts.displayPartsToString(origin.getDocumentationComment(checker)) });
    for (const member of [...(origin.members?.values() ?? [])]) add(member);
  };
  for (const file of files.values()) for (const symbol of exportsOf(checker, program, file)) add(symbol);
  return [...found.values()];
}

interface Sources {
  readonly files: ReadonlyMap<string, string>;
  readonly program: ts.Program;
  readonly checker: ts.TypeChecker;
}

function read(): Sources {
  const files = entries();
  const missing = [...files.values()].filter((file) => !existsSync(join(ROOT, file)));
  if (missing.length > 0) throw new Error(`package.json exports what does not exist: ${missing.join(", ")}`);
  const { options } = ts.getParsedCommandLineOfConfigFile(
    join(ROOT, "tsconfig.json"),
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: () => {},
    },
  ) ?? { options: {} };
  const program = ts.createProgram(
    [...files.values()].map((file) => join(ROOT, file)),
    options,
  );
  return { files, program, checker: program.getTypeChecker() };
}

function exportsOf(checker: ts.TypeChecker, program: ts.Program, file: string): readonly ts.Symbol[] {
  const source = program.getSourceFile(join(ROOT, file));
  const module = source === undefined ? undefined : checker.getSymbolAtLocation(source);
  return module === undefined ? [] : checker.getExportsOfModule(module);
}

function namesOf(checker: ts.TypeChecker, program: ts.Program, file: string): readonly string[] {
  return exportsOf(checker, program, file)
    .map((symbol) => (isOnlyAType(checker, symbol) ? `type ${symbol.name}` : symbol.name))
    .toSorted();
}

function isOnlyAType(checker: ts.TypeChecker, symbol: ts.Symbol): boolean {
  const typeOnly = symbol.declarations?.some((one) => ts.isExportSpecifier(one) && ts.isTypeOnlyExportDeclaration(one));
  if (typeOnly) return true;
  const origin = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return (origin.flags & ts.SymbolFlags.Value) === 0;
}

export const listed = (): Surface => (existsSync(LIST) ? JSON.parse(readFileSync(LIST, "utf8")) : {});

if (import.meta.main) {
  const now = surface();
  if (process.argv.includes("--write")) {
    writeFileSync(LIST, `${JSON.stringify(now, null, 2)}\n`);
    console.log(`${Object.values(now).flat().length} names are written to test/rules/surface.json.`);
  } else {
    const same = JSON.stringify(now) === JSON.stringify(listed());
    console.log(same ? "The surface is as listed." : "The surface has changed: npm run surface -- --write");
    process.exitCode = same ? 0 : 1;
  }
}
