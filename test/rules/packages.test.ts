// What Belay is installed with: which packages, from where, and pinned by what.
import { readFileSync } from "node:fs";
import { join, matchesGlob } from "node:path";
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
  expect(about.peerDependencies).toEqual({ ...OPTIONAL_PACKAGES, ...TYPES_ONLY });
  const optional = Object.entries<{ optional: boolean }>(about.peerDependenciesMeta).filter(([, one]) => one.optional);
  expect(optional.map(([name]) => name)).toEqual(Object.keys(about.peerDependencies));
  // The repository itself uses all of them, in the version that the range begins with.
  for (const [name, range] of Object.entries(OPTIONAL_PACKAGES)) {
    expect([name, about.devDependencies[name]]).toEqual([name, range.replace("^", "")]);
  }
});

/** Imported by the published types (`node:http`), and never at run time. */
const TYPES_ONLY = { "@types/node": ">=22" };

test("every relative link of the README leads to a published file, or to sources and tests in the repository", () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const links = [...readme.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target]) => target ?? "");
  // The package page resolves relative links against `repository`; an installed package has only its files.
  expect(about.repository.url).toMatch(/^git\+https:\/\/github\.com\/.+\.git$/);
  const published = (path: string) =>
    path === "LICENSE" ||
    about.files.some((pattern: string) => matchesGlob(path, pattern) || path.startsWith(`${pattern}/`));
  const inRepository = (path: string) => /^(src|test|sim)\/.+\.ts$/.test(path) || path === "docs/decisions";
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter((path) => !path.startsWith("https://") && !published(path) && !inRepository(path))).toEqual([]);
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
