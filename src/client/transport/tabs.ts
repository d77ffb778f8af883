// One event stream for all tabs of a browser: one of them holds it and passes on what the others send and receive. Only
// where a WebSocket does not get through, because a browser has six connections to a server for all of its tabs.
//
// Invariants
// 1. At most one tab holds the stream: the one that has the lock. When it is gone, another gets the lock, and every tab
//    asks again from where it was.
// 2. What a tab has asked for is left when the tab is gone.
import type { StreamDown, StreamUp } from "../../wire/stream-message.ts";
import type { CarrierParts } from "./carriers.ts";
import type { Carrier, CarrierEvents, OpenCarrier } from "./shared-stream.ts";

/** What tabs say to each other. `tab`: who says it, or whom it is for; ids begin with it. */
type Between =
  | { readonly kind: "open" | "dead" | "opened" | "closed" | "none" | "failed" }
  | { readonly kind: "up"; readonly tab: string; readonly message: StreamUp }
  | { readonly kind: "down"; readonly message: StreamDown };

interface Channel {
  postMessage(message: Between): void;
  addEventListener(type: "message", call: (event: { readonly data: Between }) => void): void;
}

interface Locks {
  request(name: string, held: () => Promise<void>): Promise<void>;
}

/** As much of a browser as is needed here. Without all of it, each client has its own stream. */
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
    // Those of the same server and the same token, which the name does not tell.
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
      this.#leader?.hear(data);
      this.#hear(data);
    });
    // Held for as long as this tab is there: a leader waits for it, and then knows that the tab is gone.
    void locks.request(`${name} ${this.#id}`, () => new Promise(() => {}));
    void locks.request(name, () => {
      this.#leader = new Leader({ open, say: (between) => this.#sayAsLeader(between), gone: goneIn(name, locks) });
      // What another leader had is lost.
      this.#sayAsLeader({ kind: "closed" });
      if (this.#opened !== undefined) this.#leader.hear({ kind: "open" });
      return new Promise(() => {});
    });
  }

  /** A tab has one carrier at a time. */
  open(events: CarrierEvents): Promise<Carrier | undefined> {
    this.#events = events;
    const opened = Promise.withResolvers<Carrier | undefined>();
    this.#opened = opened;
    this.#say({ kind: "open" });
    return opened.promise;
  }

  #hear(between: Between): void {
    switch (between.kind) {
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
        else this.#say({ kind: "open" });
        return;
      case "down": {
        const own = stripped(between.message, this.#id);
        if (own !== undefined) this.#events?.message(own);
      }
    }
  }

  #carrier(): Carrier {
    const events = this.#events;
    return {
      send: (message) => {
        if (this.#events !== events) return;
        this.#say({ kind: "up", tab: this.#id, message: { ...message, id: `${this.#id}:${message.id}` } });
      },
      close: (why) => {
        if (this.#events !== events) return;
        if (why === "dead") this.#say({ kind: "dead" });
        this.#close();
      },
    };
  }

  #close(): void {
    const events = this.#events;
    this.#events = undefined;
    events?.closed(new Error("the shared stream was closed"));
  }

  /** To whichever tab is the leader. A channel does not tell its own. */
  #say(between: Between): void {
    if (this.#leader === undefined) this.#channel.postMessage(between);
    else this.#leader.hear(between);
  }

  #sayAsLeader(between: Between): void {
    this.#channel.postMessage(between);
    this.#hear(between);
  }
}

interface LeaderParts {
  readonly open: OpenCarrier;
  readonly say: (between: Between) => void;
  /** Resolves when this tab is gone. */
  readonly gone: (tab: string) => Promise<void>;
}

/** The tab that holds the stream. */
class Leader {
  readonly #parts: LeaderParts;
  /** What each tab has asked for, and not left. */
  readonly #ids = new Map<string, Set<string>>();
  #carrier: Carrier | undefined;
  #opening = false;

  constructor(parts: LeaderParts) {
    this.#parts = parts;
  }

  hear(between: Between): void {
    if (between.kind === "open") void this.#open();
    if (between.kind === "dead") this.#carrier?.close();
    if (between.kind !== "up") return;
    const { tab, message } = between;
    this.#carrier?.send(message);
    if (message.type === "request") this.#idsOf(tab).add(message.id);
    if (message.type === "leave") this.#ids.get(tab)?.delete(message.id);
  }

  async #open(): Promise<void> {
    const { open, say } = this.#parts;
    if (this.#carrier !== undefined) return say({ kind: "opened" });
    if (this.#opening) return;
    this.#opening = true;
    let over = false;
    try {
      const carrier = await open({
        message: (message) => {
          if (message.type === "answer" || message.type === "end") this.#answered(message.id);
          say({ kind: "down", message });
        },
        closed: () => {
          over = true;
          this.#carrier = undefined;
          this.#ids.clear();
          say({ kind: "closed" });
        },
      });
      if (over) throw new Error("the stream was closed while it was opened");
      this.#carrier = carrier;
      say({ kind: carrier === undefined ? "none" : "opened" });
    } catch {
      say({ kind: "failed" });
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

/** A lock that is held by a tab as long as it is there is granted when it is gone. */
const goneIn =
  (name: string, locks: Locks) =>
  (tab: string): Promise<void> =>
    locks.request(`${name} ${tab}`, () => Promise.resolve());

function stripped(message: StreamDown, tab: string): StreamDown | undefined {
  if (!("id" in message)) return undefined;
  return message.id.startsWith(`${tab}:`) ? { ...message, id: message.id.slice(tab.length + 1) } : undefined;
}
