import { dirname, join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { filesUnder, importsOf } from "../fixtures/repository.ts";

test("the client is made of what browsers have: it compiles without Node's types", () => {
  const file = join(import.meta.dirname, "tsconfig.browser.json");
  const { config } = ts.readConfigFile(file, ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, dirname(file));
  const program = ts.createProgram(fileNames, options);
  const found = ts.getPreEmitDiagnostics(program).map((one) => ts.flattenDiagnosticMessageText(one.messageText, "\n"));
  expect(found).toEqual([]);
  const read = program.getSourceFiles().map((one) => one.fileName);
  expect(read.some((name) => name.endsWith("src/client/belay-client.ts"))).toBe(true);
  expect(read.filter((name) => name.includes("@types/node"))).toEqual([]);
}, 60_000);

test("Node is named in one file of the client, and that is loaded only when it is asked for", () => {
  const files = filesUnder("src/client").filter(({ path }) => !path.endsWith(".test.ts"));
  const outside = files.filter((file) => importsOf(file).some(({ specifier }) => !specifier.startsWith(".")));
  expect(outside.map(({ path }) => path)).toEqual(["src/client/transport/node-transport.ts"]);
  const named = files.filter(({ text }) => text.includes("node-transport.ts"));
  expect(named.map(({ path }) => path)).toEqual(["src/client/belay-client.ts"]);
  expect(named[0]?.text).toContain('await import("./transport/node-transport.ts")');
});
