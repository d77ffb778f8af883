// The configurations that the user trusts: paths and digests, in a file of the data directory, which a contained
// command cannot see. A changed configuration is no longer trusted.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { ConfigContent } from "../../../config/config-content.ts";
import type { DataDir } from "../../../sdk/data-dir.ts";

export interface TrustedConfig {
  readonly path: string;
  readonly digest: string;
  /** Wall clock, ms. */
  readonly at: number;
}

/** Old contents of a path stay trusted up to this total, so that switching between branches does not ask again. */
const TRUSTED_MAX = 1_000;

export class TrustedConfigs {
  readonly #file: string;

  constructor({ trustFile }: Pick<DataDir, "trustFile">) {
    this.#file = trustFile;
  }

  list(): readonly TrustedConfig[] {
    try {
      const read: unknown = JSON.parse(readFileSync(this.#file, "utf8"));
      const { trusted } = read as { readonly trusted?: unknown };
      return Array.isArray(trusted) ? trusted.filter(isTrusted) : [];
    } catch {
      // Missing or malformed: nothing is trusted, and the question is asked again.
      return [];
    }
  }

  has({ path, digest }: Pick<ConfigContent, "path" | "digest">): boolean {
    return this.list().some((one) => one.path === path && one.digest === digest);
  }

  add({ path, digest }: Pick<ConfigContent, "path" | "digest">, at: number): void {
    const others = this.list().filter((one) => one.path !== path || one.digest !== digest);
    this.#write([...others, { path, digest, at }].slice(-TRUSTED_MAX));
  }

  /** Returns whether the path was trusted. */
  remove(path: string): boolean {
    const all = this.list();
    const left = all.filter((one) => one.path !== path);
    if (left.length === all.length) return false;
    this.#write(left);
    return true;
  }

  #write(trusted: readonly TrustedConfig[]): void {
    mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
    const draft = `${this.#file}.${process.pid}`;
    rmSync(draft, { force: true });
    writeFileSync(draft, `${JSON.stringify({ version: 1, trusted }, undefined, 2)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(draft, this.#file);
  }
}

function isTrusted(value: unknown): value is TrustedConfig {
  if (typeof value !== "object" || value === null) return false;
  const { path, digest, at } = value as Partial<TrustedConfig>;
  return typeof path === "string" && typeof digest === "string" && typeof at === "number";
}
