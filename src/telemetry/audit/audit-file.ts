// An audit trail in files: each record is with the kernel before its request is answered.
//
// Invariants
// 1. Records are written in the order in which they were noted, one write at a time; what comes meanwhile is one write.
// 2. `note` never rejects, and resolves after AUDIT_WAIT_MS_MAX at the latest: a stop works with a full or hanging
//    disk.
// 3. What waits is at most AUDIT_WAITING_BYTES_MAX; the files are at most `filesKept` of `fileBytesMax` each.
// 4. A record that does not wait is on disk, or counted in `missed`. The log is told when that begins, and when it is
//    over.
//
// One writer: two programs with the same folder would take away each other's files. Whoever opens one holds the lock of
// the database beside it.
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
  /** A folder of its own. Made if there is none. */
  readonly folder: string;
  readonly redact: Redact;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "info" | "warn">;
  readonly fileBytesMax?: number;
  readonly filesKept?: number;
  /** For tests: a disk with a mind of its own. */
  readonly openFile?: (folder: string, number: number) => Promise<OpenedFile>;
}

/** Throws a ControlError if there is no place for it. A disk that is full is no reason: what is missed is counted. */
export async function openAuditTrail(options: AuditFileOptions): Promise<AuditTrail> {
  await makeAuditFolder(options.folder);
  const newest = (await auditNumbers(options.folder)).at(-1) ?? 1;
  const trail = new FileAuditTrail(options, newest);
  await trail.begin();
  return trail;
}

/** Trouble that may be over tomorrow. All other trouble at the start is a mistake that somebody should mend. */
const PASSING: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE"]);

/** A record that waits for the disk. */
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
  /** `failing`: the log has been told. */
  #state: "well" | "failing" | "closed" = "well";

  constructor(options: AuditFileOptions, newest: number) {
    this.#options = options;
    this.#number = newest;
  }

  get missed(): number {
    return this.#missed;
  }

  /** Mends the end of what an earlier life left, before anybody reads it. */
  async begin(): Promise<void> {
    try {
      await this.#fileFor(0);
    } catch (error) {
      if (!PASSING.has(codeOf(error) ?? "")) throw badPlace(this.#options.folder, messageOf(error), error);
      this.#fail(0, error);
    }
  }

  note(record: AuditRecord): Promise<void> {
    const bytes = Buffer.from(recordLine(keptRecord(record, this.#options.redact)), "utf8");
    if (this.#state === "closed" || this.#waitingBytes + bytes.length > AUDIT_WAITING_BYTES_MAX) {
      this.#fail(1, new Error(this.#state === "closed" ? "it is closed" : "too many records wait for the disk"));
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const tooLate = (): void => {
        this.#fail(0, new Error(`the disk has not answered for ${AUDIT_WAIT_MS_MAX} ms`));
        resolve();
      };
      const dispose = this.#options.clock.after(AUDIT_WAIT_MS_MAX, tooLate, "idle");
      this.#waitingBytes += bytes.length;
      this.#waiting.push({
        bytes,
        done: () => {
          dispose();
          resolve();
        },
      });
      this.#writing ??= this.#write();
    });
  }

  read(query: AuditQuery): Promise<AuditPage> {
    return auditPage(this.#options.folder, query);
  }

  /** Writes what waits, within the limit of one record. */
  async close(): Promise<void> {
    this.#state = "closed";
    const written = this.#writing ?? Promise.resolve();
    let dispose = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      dispose = this.#options.clock.after(AUDIT_WAIT_MS_MAX, resolve);
    });
    await Promise.race([written.then(() => this.#release()), late]);
    dispose();
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
      // A disk may take less than it is given; the rest is offered again.
      while (written < bytes.length) {
        const { bytesWritten } = await file.write(bytes, written, bytes.length - written);
        if (bytesWritten === 0) throw new Error("the disk takes nothing more");
        written += bytesWritten;
        this.#fileBytes += bytesWritten;
      }
      this.#succeed();
    } catch (error) {
      // What was written of it is kept: as many records as there are whole lines.
      this.#fail(count - lines(bytes.subarray(0, written)), error);
      // Opening it anew ends a line that was torn.
      await this.#release();
    }
  }

  /** The file that has room for so much: this one, or the next. */
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

  /** Before the next file is begun: a full disk may have room then. */
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
      // What was to be written was written, or has failed and been counted.
    }
  }

  #fail(missed: number, error: unknown): void {
    this.#missed += missed;
    if (this.#state !== "well") return;
    this.#state = "failing";
    this.#options.log.warn("the audit trail cannot be written; requests go on being answered", {
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
