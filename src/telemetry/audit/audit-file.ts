// An audit trail in files. Each record is written to the kernel before its request is answered.
//
// Invariants
// 1. Records are written in the order of the calls of `note`, one write at a time; records that arrive during a write
//    are batched into the next one.
// 2. `note` never rejects, and resolves within AUDIT_WAIT_MS_MAX: a stop works with a full or hanging disk.
// 3. At most AUDIT_WAITING_BYTES_MAX are buffered; there are at most `filesKept` files of `fileBytesMax` each.
// 4. A record that is not buffered is on disk, or counted in `missed`. A log line marks the begin and the end of
//    failing writes.
//
// There must be one writer: two processes with the same folder would delete each other's files. The writer holds the
// lock of the database beside the folder.
import { messageOf } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { AUDIT_FILE_BYTES_MAX, AUDIT_FILES_KEPT, AUDIT_WAIT_MS_MAX, AUDIT_WAITING_BYTES_MAX } from "../limits.ts";
import type { Log } from "../log.ts";
import type { Redact } from "../redactor.ts";
import {
  type AppendFile,
  auditNumbers,
  badPlace,
  codeOf,
  dropOldAuditFiles,
  LINE_FEED,
  makeAuditFolder,
  type OpenedFile,
  openAuditFile,
} from "./audit-folder.ts";
import { auditPage } from "./audit-page.ts";
import { type AuditRecord, keptRecord, recordLine } from "./audit-record.ts";
import type { AuditPage, AuditQuery, AuditTrail } from "./audit-trail.ts";

export interface AuditFileOptions {
  /** A separate folder. Created if it does not exist. */
  readonly folder: string;
  readonly redact: Redact;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "info" | "warn">;
  readonly fileBytesMax?: number;
  readonly filesKept?: number;
  /** For tests: a failing disk. */
  readonly openFile?: (folder: string, number: number) => Promise<OpenedFile>;
}

/** Opens the trail. Throws a ControlError if the folder cannot be used; on a full disk it counts missed records. */
export async function openAuditTrail(options: AuditFileOptions): Promise<AuditTrail> {
  await makeAuditFolder(options.folder);
  const newest = (await auditNumbers(options.folder)).at(-1) ?? 1;
  const trail = new FileAuditTrail(options, newest);
  await trail.begin();
  return trail;
}

/** Errors that may be temporary. Any other error at startup is a mistake in the setup. */
const TEMPORARY: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE"]);

/** A record that is not written yet. */
interface Waiting {
  readonly bytes: Buffer;
  readonly done: () => void;
}

class FileAuditTrail implements AuditTrail {
  readonly #options: AuditFileOptions;
  #number: number;
  #file: AppendFile | undefined;
  #fileBytes = 0;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #missed = 0;
  /** `failing`: it was logged that writes fail. */
  #state: "well" | "failing" | "closed" = "well";

  constructor(options: AuditFileOptions, newest: number) {
    this.#options = options;
    this.#number = newest;
  }

  get missed(): number {
    return this.#missed;
  }

  /** Completes the last line if the previous process left it torn, before the first read. */
  async begin(): Promise<void> {
    try {
      await this.#fileFor(0);
    } catch (error) {
      if (!TEMPORARY.has(codeOf(error) ?? "")) throw badPlace(this.#options.folder, messageOf(error), error);
      this.#fail(0, error);
    }
  }

  note(record: AuditRecord): Promise<void> {
    const bytes = Buffer.from(recordLine(keptRecord(record, this.#options.redact)), "utf8");
    if (this.#state === "closed" || this.#waitingBytes + bytes.length > AUDIT_WAITING_BYTES_MAX) {
      this.#fail(1, new Error(this.#state === "closed" ? "it is closed" : "too many records are buffered"));
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const onTimeout = (): void => {
        this.#fail(0, new Error(`the disk has not responded for ${AUDIT_WAIT_MS_MAX} ms`));
        resolve();
      };
      const cancelTimer = this.#options.clock.after(AUDIT_WAIT_MS_MAX, onTimeout, "idle");
      this.#waitingBytes += bytes.length;
      this.#waiting.push({
        bytes,
        done: () => {
          cancelTimer();
          resolve();
        },
      });
      this.#writing ??= this.#write();
    });
  }

  read(query: AuditQuery): Promise<AuditPage> {
    return auditPage(this.#options.folder, query);
  }

  /** Writes the buffered records, and waits as long as for one record. */
  async close(): Promise<void> {
    this.#state = "closed";
    const written = this.#writing ?? Promise.resolve();
    let cancelTimer = (): void => undefined;
    const timeout = new Promise<void>((resolve) => {
      cancelTimer = this.#options.clock.after(AUDIT_WAIT_MS_MAX, resolve);
    });
    await Promise.race([written.then(() => this.#release()), timeout]);
    cancelTimer();
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const bytes = Buffer.concat(batch.map((one) => one.bytes));
      await this.#keep(bytes, batch.length);
      this.#waitingBytes -= bytes.length;
      for (const one of batch) one.done();
    }
    this.#writing = undefined;
  }

  async #keep(bytes: Buffer, count: number): Promise<void> {
    let written = 0;
    try {
      const file = await this.#fileFor(bytes.length);
      // A write may be partial; the rest is written again.
      while (written < bytes.length) {
        const { bytesWritten } = await file.write(bytes, written, bytes.length - written);
        if (bytesWritten === 0) throw new Error("the disk accepts no more bytes");
        written += bytesWritten;
        this.#fileBytes += bytesWritten;
      }
      this.#succeed();
    } catch (error) {
      // Records whose complete line was written are kept.
      this.#fail(count - lines(bytes.subarray(0, written)), error);
      // Opening the file again ends a torn line.
      await this.#release();
    }
  }

  /** Returns a file with room for so many bytes: the current one, or the next. */
  async #fileFor(bytes: number): Promise<AppendFile> {
    const file = this.#file ?? (await this.#open());
    if (this.#fileBytes === 0 || this.#fileBytes + bytes <= (this.#options.fileBytesMax ?? AUDIT_FILE_BYTES_MAX)) {
      return file;
    }
    await this.#release();
    this.#number += 1;
    await this.#dropOld();
    return this.#open();
  }

  async #open(): Promise<AppendFile> {
    const { file, bytes } = await (this.#options.openFile ?? openAuditFile)(this.#options.folder, this.#number);
    this.#file = file;
    this.#fileBytes = bytes;
    return file;
  }

  /** Runs before the next file is created: deleting old files may free a full disk. */
  async #dropOld(): Promise<void> {
    const { folder, filesKept = AUDIT_FILES_KEPT, log } = this.#options;
    try {
      await dropOldAuditFiles(folder, this.#number, filesKept);
    } catch (error) {
      log.warn("old files of the audit trail cannot be removed", { folder, why: messageOf(error) });
    }
  }

  async #release(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    try {
      await file?.close();
    } catch {
      // All records were written, or have failed and were counted.
    }
  }

  #fail(missed: number, error: unknown): void {
    this.#missed += missed;
    if (this.#state !== "well") return;
    this.#state = "failing";
    this.#options.log.warn("the audit trail cannot be written; requests are still answered", {
      missed: this.#missed,
      why: messageOf(error),
    });
  }

  #succeed(): void {
    if (this.#state !== "failing") return;
    this.#state = "well";
    this.#options.log.info("the audit trail is written again", { missed: this.#missed });
  }
}

function lines(bytes: Buffer): number {
  let count = 0;
  for (const byte of bytes) if (byte === LINE_FEED) count += 1;
  return count;
}
