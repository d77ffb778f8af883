// A host's program, bundled: with Belay inside it is refused in one sentence that says what to do, and with Belay left
// out it works. In memory it works either way.
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build as esbuild } from "esbuild";
import { build as rolldown } from "rolldown";
import { beforeAll, describe, expect, test } from "vitest";
import { OPTIONAL_PACKAGES } from "../../src/core/optional-package.ts";
import { installedRuntimes, linkPackage, projectWithBelay } from "./built-package.ts";

let project = "";
let packages = "";
beforeAll(() => {
  packages = installedRuntimes();
  project = projectWithBelay();
  writeFileSync(join(project, "host.mjs"), HOST);
  // A bundler looks for every package that is named anywhere, needed or not.
  for (const name of Object.keys(OPTIONAL_PACKAGES)) linkPackage(project, name);
}, 300_000);

/** Written without top-level await, which not every format has. */
const HOST = `
import { openBelay } from "agent-belay";
const [store] = process.argv.slice(2);
openBelay({ store, agent: async () => "done" })
  .then(async (belay) => {
    const run = belay.prompt("go");
    console.log(await run.text());
    const stopped = belay.prompt("go");
    console.log((await stopped.cancel()).kind, (await stopped.outcome).kind);
    await belay.close();
  })
  .catch((error) => {
    console.log(error.code, error.retryable, error.message);
    console.log(error.hint);
  });
`;

const WORKS = ["done", "withdrawn cancelled"];
const REFUSED = [
  "invalid false Belay was bundled, but the files of its worker threads were not.",
  expect.stringContaining("serverExternalPackages"),
];

type Inside = "with Belay inside" | "with Belay left out";
type Build = (inside: Inside) => Promise<string>;

const left = (inside: Inside): string[] => (inside === "with Belay inside" ? [] : ["agent-belay"]);

const viaEsbuild =
  (format: "esm" | "cjs"): Build =>
  async (inside) => {
    const outfile = join(project, `esbuild-${format}.${format === "esm" ? "mjs" : "cjs"}`);
    const target = { format, platform: "node", target: "node22" } as const;
    // Packages of CommonJS in a bundle of modules ask for what Node.js has by \`require\`.
    const banner = { js: format === "esm" ? REQUIRE : "" };
    const common = { absWorkingDir: project, bundle: true, logLevel: "silent" } as const;
    await esbuild({ ...common, ...target, banner, entryPoints: ["host.mjs"], outfile, external: left(inside) });
    return outfile;
  };
const REQUIRE = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

const viaRolldown: Build = async (inside) => {
  const file = join(project, "rolldown.mjs");
  const output = { file, format: "esm", codeSplitting: false } as const;
  await rolldown({
    cwd: project,
    input: "host.mjs",
    platform: "node",
    external: left(inside),
    logLevel: "silent",
    output,
  });
  return file;
};

const viaWebpack: Build = async (inside) => {
  const require = createRequire(join(packages, "any.js"));
  const externals = Object.fromEntries(left(inside).map((name) => [name, `import ${name}`]));
  const config = {
    ...{ mode: "production", target: "node22", context: project, entry: "./host.mjs", externals },
    output: { path: project, filename: "webpack.mjs", module: true, chunkFormat: "module" },
    ...{ experiments: { outputModule: true }, optimization: { minimize: false } },
    // As on another machine: what was beside the sources is not there.
    module: { parser: { javascript: { importMeta: false } } },
  };
  const program = `require(${JSON.stringify(require.resolve("webpack"))})(${JSON.stringify(config)}, (error, stats) => {
    if (error || stats.hasErrors()) throw error ?? new Error(stats.toString());
  })`;
  execFileSync(process.execPath, ["-e", program], { cwd: project, stdio: "pipe" });
  return join(project, "webpack.mjs");
};

const BUNDLERS: readonly (readonly [string, Build])[] = [
  ["esbuild, modules", viaEsbuild("esm")],
  ["esbuild, CommonJS", viaEsbuild("cjs")],
  ["Rolldown, as Vite has it", viaRolldown],
  ["webpack", viaWebpack],
];

function said(file: string, store: string): readonly string[] {
  rmSync(join(project, "host.db"), { force: true });
  const { stdout, stderr } = spawnSync(process.execPath, [file, store], {
    cwd: project,
    encoding: "utf8",
    timeout: 60_000,
  });
  return `${stdout}${stderr}`.split("\n").filter(Boolean);
}

describe.each(BUNDLERS)("%s", (_, build) => {
  test("with Belay inside: a file is refused with what to do, and memory works", async () => {
    const file = await build("with Belay inside");
    expect(said(file, "host.db")).toEqual(REFUSED);
    expect(said(file, ":memory:")).toEqual(WORKS);
  });

  test("with Belay left out: both work", async () => {
    const file = await build("with Belay left out");
    expect(said(file, "host.db")).toEqual(WORKS);
    expect(said(file, ":memory:")).toEqual(WORKS);
  });
});
