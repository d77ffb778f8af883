// One event stream for all tabs of a browser: one tab holds it and relays the messages of the others. Used only where
// a WebSocket does not get through, because all tabs together have six connections to a server.
//
// Invariants
// 1. At most one tab holds the stream: the one that has the lock. When it is gone, another tab gets the lock, and
//    every tab requests its streams again from their cursors.
// 2. When a tab is gone, the requests it had pending are cancelled.
import type { StreamDown, StreamUp } from "../../wire/stream-message.ts";
import type { CarrierParts } from "./carriers.ts";
import type { Carrier, CarrierEvents, OpenCarrier } from "./shared-stream.ts";

/** Messages between tabs. `tab`: the sender or the recipient; message ids begin with it. */
type TabMessage =
  | { readonly kind: "open" | "dead" | "opened" | "closed" | "none" | "failed" }
  | { readonly kind: "up"; readonly tab: string; readonly message: StreamUp }
  | { readonly kind: "down"; readonly message: StreamDown };

interface Channel {
  postMessage(message: TabMessage): void;
  addEventListener(type: "message", call: (event: { readonly data: TabMessage }) => void): void;
}

interface Locks {
  request(name: string, held: () => Promise<void>): Promise<void>;
}

/** The browser features used here. If one is missing, each client has its own stream. */
interface Browser {
  readonly BroadcastChannel?: new (name: string) => Channel;
  readonly navigator?: { readonly locks?: Locks };
  readonly location?: object;
  readonly crypto?: { readonly subtle?: { digest(name: string, data: Uint8Array): Promise<ArrayBuffer> } };
}

export function sharedByTabs({ base, token = "" }: CarrierParts, open: OpenCarrier): OpenCarrier {
  const { BroadcastChannel: Make, navigator, location, crypto } = globalThis as unknown as Browser;
  const locks = navigator?.locks;
  const subtle = crypto?.subtle;
  if (Make === undefined || locks === undefined || location === undefined || subtle === undefined) return open;
  let tab: Promise<Tab> | undefined;
  const join = async (): Promise<Tab> => {
    // Tabs with the same server and the same token share a channel; hashing keeps the token out of its name.
    const digest = await subtle.digest("SHA-256", new TextEncoder().encode(`${base}\n${token}`));
    const name = `belay ${Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    return new Tab(name, new Make(name), locks, open);
  };
  return async (events) => {
    tab ??= join();
    return (await tab).open(events);
  };
}

class Tab {
  readonly #id = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16)).join("");
  readonly #channel: Channel;
  #events: CarrierEvents | undefined;
  #opened: PromiseWithResolvers<Carrier | undefined> | undefined;
  #leader: Leader | undefined;

  constructor(name: string, channel: Channel, locks: Locks, open: OpenCarrier) {
    this.#channel = channel;
    channel.addEventListener("message", ({ data }) => {
      this.#leader?.receive(data);
      this.#receive(data);
    });
    // Held for as long as this tab exists: the leader waits for it to detect that the tab is gone.
    void locks.request(`${name} ${this.#id}`, () => new Promise(() => {}));
    void locks.request(name, () => {
      this.#leader = new Leader({ open, send: (post) => this.#sendAsLeader(post), gone: goneIn(name, locks) });
      // The requests of a previous leader are lost.
      this.#sendAsLeader({ kind: "closed" });
      if (this.#opened !== undefined) this.#leader.receive({ kind: "open" });
      return new Promise(() => {});
    });
  }

  /** A tab has one carrier at a time. */
  open(events: CarrierEvents): Promise<Carrier | undefined> {
    this.#events = events;
    const opened = Promise.withResolvers<Carrier | undefined>();
    this.#opened = opened;
    this.#send({ kind: "open" });
    return opened.promise;
  }

  #receive(post: TabMessage): void {
    switch (post.kind) {
      case "opened":
        this.#opened?.resolve(this.#carrier());
        this.#opened = undefined;
        return;
      case "failed":
        this.#opened?.reject(new Error("the shared stream cannot be opened"));
        this.#opened = undefined;
        return;
      case "none":
        this.#opened?.resolve(undefined);
        this.#opened = undefined;
        return;
      case "closed":
        if (this.#opened === undefined) this.#close();
        else this.#send({ kind: "open" });
        return;
      case "down": {
        const own = stripped(post.message, this.#id);
        if (own !== undefined) this.#events?.message(own);
      }
    }
  }

  #carrier(): Carrier {
    const events = this.#events;
    return {
      send: (message) => {
        if (this.#events !== events) return;
        this.#send({ kind: "up", tab: this.#id, message: { ...message, id: `${this.#id}:${message.id}` } });
      },
      close: (why) => {
        if (this.#events !== events) return;
        if (why === "dead") this.#send({ kind: "dead" });
        this.#close();
      },
    };
  }

  #close(): void {
    const events = this.#events;
    this.#events = undefined;
    events?.closed(new Error("the shared stream was closed"));
  }

  /** Sends to the leader, whichever tab that is. A channel does not deliver to its own tab. */
  #send(post: TabMessage): void {
    if (this.#leader === undefined) this.#channel.postMessage(post);
    else this.#leader.receive(post);
  }

  #sendAsLeader(post: TabMessage): void {
    this.#channel.postMessage(post);
    this.#receive(post);
  }
}

interface LeaderParts {
  readonly open: OpenCarrier;
  readonly send: (post: TabMessage) => void;
  /** Resolves when this tab is gone. */
  readonly gone: (tab: string) => Promise<void>;
}

/** The tab that holds the stream. */
class Leader {
  readonly #parts: LeaderParts;
  /** The pending requests of each tab. */
  readonly #ids = new Map<string, Set<string>>();
  #carrier: Carrier | undefined;
  #opening = false;

  constructor(parts: LeaderParts) {
    this.#parts = parts;
  }

  receive(post: TabMessage): void {
    if (post.kind === "open") void this.#open();
    if (post.kind === "dead") this.#carrier?.close();
    if (post.kind !== "up") return;
    const { tab, message } = post;
    this.#carrier?.send(message);
    if (message.type === "request") this.#idsOf(tab).add(message.id);
    if (message.type === "leave") this.#ids.get(tab)?.delete(message.id);
  }

  async #open(): Promise<void> {
    const { open, send } = this.#parts;
    if (this.#carrier !== undefined) return send({ kind: "opened" });
    if (this.#opening) return;
    this.#opening = true;
    let over = false;
    try {
      const carrier = await open({
        message: (message) => {
          if (message.type === "answer" || message.type === "end") this.#answered(message.id);
          send({ kind: "down", message });
        },
        closed: () => {
          over = true;
          this.#carrier = undefined;
          this.#ids.clear();
          send({ kind: "closed" });
        },
      });
      if (over) throw new Error("the stream was closed while it was opened");
      this.#carrier = carrier;
      send({ kind: carrier === undefined ? "none" : "opened" });
    } catch {
      send({ kind: "failed" });
    } finally {
      this.#opening = false;
    }
  }

  #answered(id: string): void {
    for (const ids of this.#ids.values()) ids.delete(id);
  }

  #idsOf(tab: string): Set<string> {
    const known = this.#ids.get(tab);
    if (known !== undefined) return known;
    const ids = new Set<string>();
    this.#ids.set(tab, ids);
    void this.#parts.gone(tab).then(() => {
      for (const id of ids) this.#carrier?.send({ type: "leave", id });
      this.#ids.delete(tab);
    });
    return ids;
  }
}

/** A tab holds its lock while it exists, so the lock is granted when the tab is gone. */
const goneIn =
  (name: string, locks: Locks) =>
  (tab: string): Promise<void> =>
    locks.request(`${name} ${tab}`, () => Promise.resolve());

function stripped(message: StreamDown, tab: string): StreamDown | undefined {
  if (!("id" in message)) return undefined;
  return message.id.startsWith(`${tab}:`) ? { ...message, id: message.id.slice(tab.length + 1) } : undefined;
}
