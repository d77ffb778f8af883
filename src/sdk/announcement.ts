// Announces the process that holds a data directory: with a note and a socket.
//
// Invariants
// 1. The holder of the lock writes both, and removes both, at the latest when its process exits.
// 2. If they are removed while it serves (`git clean`, `rm -rf`), it takes the lock again and restores them, so that
//    its work can be stopped. If another program holds the directory by then, `onLost` is called.
// 3. A renamed directory is left alone: it still contains the socket, so commands find it under the new name.
import { statSync } from "node:fs";
import { toControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { FileIdentity, HeldDirectory } from "../store/sqlite/file/file-identity.ts";
import { type DataDir, makeDataDir, removeServer, type ServerNote, writeServer } from "./data-dir.ts";
import type { DataLock } from "./data-lock.ts";

export interface Announcing {
  readonly home: DataDir;
  readonly note: ServerNote;
  readonly lock: Pick<DataLock, "keep">;
  readonly sockets: Sockets;
  readonly clock: Clock;
  /** Reports what happened to the directory, for operators. */
  readonly warn: (message: string, about?: { readonly error: unknown }) => void;
  /** Another program holds the directory from now on: this one must stop its work. */
  readonly onLost: () => void;
}

export interface Sockets {
  isInPlace(): boolean;
  /** Opens a new socket at the same path. */
  restore(): Promise<void>;
  /** Removes the socket files at once. */
  forget(): void;
}

export interface Announcement {
  /** New commands no longer find it. Connected clients stay connected. */
  hide(): void;
  /** Removes everything that was announced. */
  close(): void;
}

/** Interval of the check that the note and the socket still exist: a few `stat` calls. */
const CHECK_MS = 500;

export function announce(server: Announcing): Announcement {
  const { home, note, clock, sockets } = server;
  const watch = new Watch(server);
  const removeAll = (): void => {
    removeServer(home, note);
    sockets.forget();
  };
  process.once("exit", removeAll);
  writeServer(home, note);
  watch.begin(clock);
  return {
    hide: () => {
      watch.close();
      removeServer(home, note);
    },
    close: () => {
      watch.close();
      removeAll();
      process.off("exit", removeAll);
    },
  };
}

class Watch {
  readonly #server: Announcing;
  #directory: HeldDirectory;
  #files: readonly FileIdentity[] = [];
  #cancel: () => void = () => {};
  #isClosed = false;
  #problem = "";

  constructor(server: Announcing) {
    this.#server = server;
    this.#directory = new HeldDirectory(server.home.dir);
  }

  begin(clock: Clock): void {
    this.#files = this.#present();
    const schedule = (): void => {
      this.#cancel = clock.after(CHECK_MS, () => void this.#check().finally(schedule), "idle");
      if (this.#isClosed) this.#cancel();
    };
    schedule();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancel();
    this.#directory.close();
  }

  /** The note and the store, if they exist. */
  #present(): readonly FileIdentity[] {
    const { home, note } = this.#server;
    return [home.serverFile, ...(note.store === undefined ? [] : [note.store])]
      .filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined)
      .map((path) => new FileIdentity(path));
  }

  async #check(): Promise<void> {
    try {
      const { sockets } = this.#server;
      if (this.#isClosed || this.#directory.look() === "moved") return;
      if (sockets.isInPlace() && this.#files.every((file) => typeof file.look() !== "string")) return;
      await this.#restore();
      this.#problem = "";
    } catch (error) {
      const { message } = toControlError(error);
      // The same problem is logged once.
      if (message !== this.#problem) this.#server.warn("the data directory cannot be restored", { error });
      this.#problem = message;
    }
  }

  async #restore(): Promise<void> {
    const { home, note, lock, sockets, warn, onLost } = this.#server;
    makeDataDir(home);
    if ((await lock.keep()) === "lost") {
      warn("another program has taken over the data directory");
      this.close();
      onLost();
      return;
    }
    if (this.#isClosed) return;
    if (!sockets.isInPlace()) await sockets.restore();
    if (this.#isClosed) return sockets.forget();
    writeServer(home, note);
    this.#files = this.#present();
    this.#directory.close();
    this.#directory = new HeldDirectory(home.dir);
    warn("files of the data directory were removed or replaced; socket and note were restored");
  }
}
