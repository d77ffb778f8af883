// `belay backup FILE DIRECTORY`: a consistent copy of a store, made while it is in use, and verified.
//
// Invariants
// 1. The directory appears, complete and verified, or not at all: the copy is made beside it and then renamed.
// 2. The store is only read. What was acknowledged before the copy began is in it.
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import { copyFile } from "../../../store/sqlite/file/copy-file.ts";
import { EXIT_FOUND, EXIT_OK } from "../../shared/exit-code.ts";
import { count } from "../../shared/format/format-outcome.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { sizeOf } from "../status/status.ts";
import { checkFile } from "../verify/verify.ts";

export interface BackupOptions {
  readonly file: string;
  readonly directory: string;
  readonly json: boolean;
}

export function backUp({ file, directory, json }: BackupOptions): number {
  const place = resolve(directory);
  if (existsSync(place)) {
    throw new ControlError("invalid", `${directory} exists already. Nothing was written.`, {
      hint: "Name a directory that does not exist yet.",
    });
  }
  const draft = `${place}.incomplete`;
  rmSync(draft, { recursive: true, force: true });
  try {
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    const copy = join(draft, basename(file));
    copyFile(file, copy);
    const { sessions, runs, events, findings } = checkFile(copy);
    // After the store: output is written before the end of its process is recorded, so none is missing from the copy.
    copyOutput(file, copy);
    const bytes = statSync(copy).size;
    renameSync(draft, place);
    if (json) print(JSON.stringify({ backup: place, bytes, sessions, runs, events, findings }));
    else print(`${place}: ${sizeOf(bytes)}, ${count(sessions, "session")}, ${count(events, "event")}, verified.`);
    for (const { session, message } of findings) process.stderr.write(`${session}: ${message}\n`);
    return findings.length === 0 ? EXIT_OK : EXIT_FOUND;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function copyOutput(file: string, copy: string): void {
  const from = join(`${file}.processes`, "output");
  if (!existsSync(from)) return;
  const to = join(`${copy}.processes`, "output");
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  cpSync(from, to, { recursive: true });
}
