// The package as it is published, in a separate project: built, beside what it depends on.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import { ROOT } from "../fixtures/repository.ts";

const DEPENDENCIES = ["commander", "ws", "zod"];

/** The folder of a project that has installed Belay. Removed after the tests of the file. */
export function projectWithBelay(): string {
  const project = mkdtempSync(join(tmpdir(), "belay-project-"));
  afterAll(() => rmSync(project, { recursive: true, force: true }));
  const home = join(project, "node_modules/agent-belay");
  mkdirSync(home, { recursive: true });
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", join(home, "dist")], { cwd: ROOT });
  for (const part of ["package.json", "bin"]) cpSync(join(ROOT, part), join(home, part), { recursive: true });
  for (const name of DEPENDENCIES) linkPackage(project, name);
  const dependencies = Object.fromEntries(["agent-belay", ...DEPENDENCIES].map((name) => [name, "*"]));
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", dependencies }));
  cpSync(join(import.meta.dirname, "program.mjs"), join(project, "program.mjs"));
  return project;
}

/** As the repository has it. */
export function linkPackage(project: string, name: string): void {
  const path = join(project, "node_modules", name);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), path);
}

/** The packages of this folder. */
export function installedRuntimes(): string {
  const packages = join(import.meta.dirname, "node_modules");
  if (existsSync(packages)) return packages;
  throw new Error("What these tests run in is not installed. Install it: node test/runtimes/install.ts");
}
