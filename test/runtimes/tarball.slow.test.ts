// The tarball that `npm publish` uploads: its entries resolve, its types compile, and it carries no sources.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import ts from "typescript";
import { beforeAll, expect, test } from "vitest";
import { ROOT } from "../fixtures/repository.ts";
import { linkPackage, projectWithBelay } from "./built-package.ts";

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

const about = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
let project = "";
let tarball = "";
let files: readonly string[] = [];
beforeAll(() => {
  project = projectWithBelay();
  const home = join(project, "node_modules/agent-belay");
  const pages = readdirSync(ROOT).filter((name) => name.endsWith(".md"));
  for (const part of [...pages, "LICENSE", "docs", "examples"]) {
    cpSync(join(ROOT, part), join(home, part), { recursive: true });
  }
  // Without `prepack`: the package is built already, and nothing of the repository is written.
  const words = ["pack", "--ignore-scripts", "--json", "--pack-destination", project];
  const packed: unknown = JSON.parse(execFileSync("npm", words, { cwd: home, encoding: "utf8" }));
  const [first] = (Array.isArray(packed) ? packed : Object.values(packed as object)) as Packed[];
  tarball = join(project, first?.filename ?? "");
  files = first?.files.map(({ path }) => path) ?? [];
}, 300_000);

test("it has the README, the pages and the examples, no test, and no source map", () => {
  expect(files).toEqual(
    expect.arrayContaining(["README.md", "LICENSE", "docs/models.md", "examples/01-run-a-prompt.ts"]),
  );
  expect(files.filter((path) => /\.test\.|\.map$|^(src|test|sim|bench)\//.test(path))).toEqual([]);
});

test("publint finds no error and no warning", async () => {
  const bytes = Uint8Array.from(readFileSync(tarball)).buffer;
  const { messages, pkg } = await publint({ level: "warning", strict: true, pack: { tarball: bytes } });
  expect(messages.map((message) => formatMessage(message, pkg ?? {}, { color: false }))).toEqual([]);
});

test("Are The Types Wrong finds no entry whose types do not resolve for an ES module", () => {
  const attw = join(ROOT, "node_modules/@arethetypeswrong/cli/dist/index.js");
  const words = [attw, tarball, "--profile", "esm-only", "--format", "ascii", "--no-emoji", "--no-color"];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  expect([status, stderr], stdout).toEqual([0, ""]);
});

test("the types of every entry compile without skipLibCheck, beside @types/node", () => {
  const peers = ["@types/node", "undici-types", "@agentclientprotocol/sdk", "@ai-sdk/provider", "@opentelemetry/api"];
  for (const name of peers) linkPackage(project, name);
  const entries = Object.keys(about.exports).filter((entry) => entry !== "./package.json");
  const program = join(project, "entries.ts");
  const lines = entries.map((entry, index) => `export * as e${index} from "${join("agent-belay", entry)}";\n`);
  writeFileSync(program, lines.join(""));
  const found = ts.getPreEmitDiagnostics(
    ts.createProgram([program], {
      ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, preserveSymlinks: true },
      ...{ module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2024, types: ["node"] },
      ...{ lib: ["lib.es2024.d.ts", "lib.esnext.disposable.d.ts"], typeRoots: [join(project, "node_modules/@types")] },
    }),
  );
  const ours = found.filter(
    ({ file }) => file === undefined || /entries\.ts$|\/agent-belay\/dist\//.test(file.fileName),
  );
  expect(ours.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "))).toEqual([]);
});
