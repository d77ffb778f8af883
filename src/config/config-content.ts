// The content of a configuration: its file and every file that it names, with one digest over all of them.
//
// A quoted string that is the path of a file names that file, in the configuration and in code that it names. Packages
// are not included: the lockfile of their directory pins them, not the configuration.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { dirname, extname, resolve } from "node:path";
import { ControlError } from "../core/errors.ts";

export interface ConfigContent {
  /** With symbolic links resolved. */
  readonly path: string;
  /** SHA-256 of all files, with their paths. */
  readonly digest: string;
  /** The configuration file is the first. */
  readonly files: readonly string[];
  /** The text of the configuration file, as read for the digest. */
  readonly text: string;
}

/** Enough for a configuration and its code written by hand. A larger one must be named with `--config`. */
const FILES_MAX = 256;
const FILE_BYTES_MAX = 1024 * 1024;

const CODE = new Set([".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"]);

/** Extensions of files that code and configurations read, without data that changes while Belay runs (a store). */
const NAMED = new Set([...CODE, ".json", ".md", ".txt", ".yaml", ".yml", ".toml", ".sh", ".py", ".wasm", ".node"]);

/** The store setting is not followed: that file changes with every run. */
const STORE = /["'`]?\bstore["'`]?\s*:\s*["'`][^"'`\n]*["'`]/g;

const QUOTED = /"([^"\n]{1,1000})"|'([^'\n]{1,1000})'|`([^`\n$]{1,1000})`/g;

export async function configContent(path: string): Promise<ConfigContent> {
  const first = await realpath(path);
  const read = new Map<string, Buffer>();
  const left = [first];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (read.has(file)) continue;
    if (read.size === FILES_MAX) throw notTrustable(path, `names more than ${FILES_MAX} files`);
    const bytes = await readBytes(file, FILE_BYTES_MAX);
    read.set(file, bytes);
    if (file === first || CODE.has(extname(file))) left.push(...(await namedFiles(file, bytes.toString("utf8"))));
  }
  const files = [first, ...[...read.keys()].filter((file) => file !== first).sort()];
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${JSON.stringify(file)} ${sha256(read.get(file) ?? Buffer.alloc(0))}\n`);
  return { path: first, digest: hash.digest("hex"), files, text: read.get(first)?.toString("utf8") ?? "" };
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** The files that a text names, with symbolic links resolved. */
async function namedFiles(file: string, text: string): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const [, double, single, template] of text.replaceAll(STORE, "").matchAll(QUOTED)) {
    const name = double ?? single ?? template ?? "";
    if (extname(name) !== "" && !NAMED.has(extname(name))) continue;
    const real = await realFile(resolve(dirname(file), name));
    if (real !== undefined) found.add(real);
  }
  return [...found];
}

async function realFile(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isFile() ? await realpath(path) : undefined;
  } catch {
    // A file that does not exist is not used either.
    return undefined;
  }
}

async function readBytes(path: string, bytesMax: number): Promise<Buffer> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) throw notTrustable(path, "is not a regular file");
    const block = Buffer.alloc(bytesMax + 1);
    let filled = 0;
    while (filled < block.length) {
      const { bytesRead } = await handle.read(block, filled, block.length - filled, null);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    if (filled > bytesMax) throw notTrustable(path, `has more than ${bytesMax} bytes`);
    return Buffer.from(block.subarray(0, filled));
  } finally {
    await handle.close();
  }
}

const notTrustable = (path: string, problem: string): ControlError =>
  new ControlError("invalid", `${path} was found but cannot be trusted: it ${problem}.`, {
    hint: "Name the configuration with --config, or ignore it with --no-config.",
  });
