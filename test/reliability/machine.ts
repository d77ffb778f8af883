// The machine and the commit a figure was made on, in words that name neither its owner nor its place.
import { execFileSync } from "node:child_process";
import { cpus, release, totalmem } from "node:os";
import { ROOT } from "../fixtures/repository.ts";
import type { Machine } from "./figure.ts";

const GB = 1_000_000_000;

export function thisMachine(): Machine {
  const all = cpus();
  return {
    cores: all.length,
    cpu: all[0]?.model.trim() || "unknown",
    memoryGB: Math.round(totalmem() / GB),
    kernel: `${process.platform} ${release()}`,
    node: process.versions.node,
    sqlite: process.versions.sqlite ?? "none",
  };
}

/** What was run is what was committed, or it is said that it is not. */
export function thisCommit(): string {
  const git = (...words: readonly string[]): string =>
    execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).trim();
  const changed = git("status", "--porcelain", "--", "src", "sim", "test") !== "";
  return `${git("rev-parse", "--short=12", "HEAD")}${changed ? "+changes" : ""}`;
}
