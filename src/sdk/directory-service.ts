// An embedded Belay that serves the directory of its store: commands of the same user find it and can stop its work,
// as with `belay serve`.
//
// Invariant: the lock is taken first and released last. In between this program owns the socket and the note.
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { type Serving, serveBelay } from "../http/serve.ts";
import type { BelayControl } from "../ports/control.ts";
import type { Notify } from "../ports/hooks.ts";
import type { Store } from "../ports/store.ts";
import { FileIdentity } from "../store/sqlite/file/file-identity.ts";
import { canonicalPath } from "../store/sqlite/file/owner.ts";
import { systemClock } from "../system/system-clock.ts";
import { version } from "../system/version.ts";
import { type Announcement, announce, type Sockets } from "./announcement.ts";
import { type DataDir, makeDataDir, openDataDir, socketOf } from "./data-dir.ts";
import { type DataLock, takeDataDirectory } from "./data-lock.ts";

export class DirectoryService {
  readonly store: Store | ":memory:";
  /** Paths that no command of an agent may read. */
  readonly hidden: readonly string[];
  readonly #home: DataDir;
  readonly #file: string;
  readonly #lock: DataLock;
  readonly #notify: Notify;
  #sockets: DirectorySockets | undefined;
  #announcement: Announcement | undefined;

  /** Takes the directory of the store `file`, or throws `store_locked`. */
  static async open(file: string, notify: Notify): Promise<DirectoryService> {
    const home = openDataDir({ home: dirname(canonicalPath(file)), env: process.env });
    makeDataDir(home);
    return new DirectoryService(home, canonicalPath(file), await takeDataDirectory(home, file), notify);
  }

  private constructor(home: DataDir, file: string, lock: DataLock, notify: Notify) {
    this.#home = home;
    this.#file = file;
    this.#lock = lock;
    this.#notify = notify;
    this.store = lock.store;
    this.hidden = [home.dir, dirname(socketOf(home))];
  }

  async begin(belay: BelayControl): Promise<void> {
    const socket = socketOf(this.#home);
    const sockets = new DirectorySockets(belay, socket, this.#home.dir);
    this.#sockets = sockets;
    await sockets.restore();
    const about = { pid: process.pid, socket, startedAt: systemClock.now(), version: version() };
    const warn = (message: string): void => this.#notify({ type: "directory", message });
    this.#announcement = announce({
      ...{ home: this.#home, note: { ...about, store: this.#file }, lock: this.#lock, sockets },
      // The takeover was reported before.
      ...{ clock: systemClock, warn, onLost: () => void belay.close().catch(() => {}) },
    });
  }

  /** New commands no longer find it. Connected ones are served until the end. */
  hide(): void {
    this.#announcement?.hide();
  }

  /** Does not reject: the Belay closed the store first and reported any error. */
  async end(): Promise<void> {
    this.#announcement?.close();
    await this.#sockets?.close().catch(() => {});
    await this.#lock.release().catch(() => {});
  }
}

/** One socket; more if its file was removed, because clients of an earlier one stay connected to it. */
class DirectorySockets implements Sockets {
  readonly #belay: BelayControl;
  readonly #path: string;
  readonly #tokens: string;
  readonly #open: { readonly serving: Serving; readonly file: FileIdentity }[] = [];

  constructor(belay: BelayControl, path: string, tokens: string) {
    this.#belay = belay;
    this.#path = path;
    this.#tokens = tokens;
  }

  async restore(): Promise<void> {
    const at = { kind: "socket", path: this.#path } as const;
    const serving = await serveBelay(this.#belay, { tokens: this.#tokens, at });
    this.#open.push({ serving, file: new FileIdentity(this.#path) });
  }

  isInPlace(): boolean {
    return this.#open.some(({ file }) => typeof file.look() !== "string");
  }

  forget(): void {
    if (this.isInPlace()) rmSync(this.#path, { force: true });
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.map(({ serving }) => serving.close()));
  }
}
