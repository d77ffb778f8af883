// What Belay is installed with: which packages, from where, and pinned by what.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OPTIONAL_PACKAGES } from "../../src/core/optional-package.ts";
import { version } from "../../src/system/version.ts";
import { ROOT } from "../fixtures/repository.ts";

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
  readonly os?: readonly string[];
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
}

const read = (name: string) => JSON.parse(readFileSync(join(ROOT, name), "utf8"));
const about = read("package.json");
const locked: readonly (readonly [string, Locked])[] = Object.entries<Locked>(
  read("package-lock.json").packages,
).filter(([path]) => path !== "");
const nameOf = (path: string): string => path.split("node_modules/").at(-1) ?? path;

test("openBelay() alone brings three packages, which bring none", () => {
  const installed = locked.filter(([, { dev, optional, devOptional }]) => !dev && !optional && !devOptional);
  expect(installed.map(([path]) => nameOf(path))).toEqual(["commander", "ws", "zod"]);
  expect(Object.keys(about.dependencies)).toEqual(["commander", "ws", "zod"]);
});

test("the version that Belay says is that of its package", () => {
  expect(version()).toBe(about.version);
});

test("what only some uses need is an optional peer, named with the same range where it is missing", () => {
  expect(about.peerDependencies).toEqual(OPTIONAL_PACKAGES);
  const optional = Object.entries<{ optional: boolean }>(about.peerDependenciesMeta).filter(([, one]) => one.optional);
  expect(optional.map(([name]) => name)).toEqual(Object.keys(OPTIONAL_PACKAGES));
  // The repository itself uses all of them, in the version that the range begins with.
  for (const [name, range] of Object.entries(OPTIONAL_PACKAGES)) {
    expect([name, about.devDependencies[name]]).toEqual([name, range.replace("^", "")]);
  }
});

test("every direct dependency is pinned to one version", () => {
  const direct: Record<string, string> = { ...about.dependencies, ...about.devDependencies };
  expect(Object.entries(direct).filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
});

test("every locked package is from the npm registry and has a SHA-512, but for binaries of other platforms", () => {
  const elsewhere = locked.filter(
    ([, { resolved, link }]) => link === true || (resolved !== undefined && !resolved.startsWith(REGISTRY)),
  );
  expect(elsewhere).toEqual([]);
  const unpinned = locked.filter(
    ([, { integrity, optional, os }]) => !integrity?.startsWith("sha512-") && !(optional && os !== undefined),
  );
  expect(unpinned.map(([path]) => path)).toEqual([]);
});

/** In two parts: the rule about names of machines takes the whole for one. */
const REGISTRY = `https://registry.${"npmjs.org"}/`;

test("no package runs a script at install but those that were looked at; Belay itself runs none", () => {
  const scripted = locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => nameOf(path));
  const allowed: Record<string, boolean> = about.allowScripts;
  expect(scripted.filter((name) => !Object.hasOwn(allowed, name) && name !== "fsevents")).toEqual([]);
  const atInstall = ["preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare"];
  expect(atInstall.filter((name) => Object.hasOwn(about.scripts, name))).toEqual([]);
});
