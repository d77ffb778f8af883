// All messages of one connection, in order, as seen at the client's end.
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";

export type Fields = Readonly<Record<string, unknown>>;

export interface Message {
  readonly jsonrpc: "2.0";
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields | null;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Fields };
}

export interface Said {
  readonly by: "client" | "agent";
  readonly message: Message;
}

export type Version = 1 | 2;

interface Waiter {
  readonly look: () => boolean;
  readonly fail: (error: Error) => void;
}

export class Transcript {
  readonly said: Said[] = [];
  #waiters: Waiter[] = [];
  #over: Error | undefined;

  /** Wraps the client's end of a connection and records every message. */
  around(stream: Stream): Stream {
    const heard = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        this.add("agent", message);
        controller.enqueue(message);
      },
      flush: () => this.end(),
    });
    const spoken = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        this.add("client", message);
        controller.enqueue(message);
      },
    });
    stream.readable.pipeTo(heard.writable).catch(() => this.end());
    spoken.readable.pipeTo(stream.writable).catch(() => {});
    return { readable: heard.readable, writable: spoken.writable };
  }

  add(by: Said["by"], message: unknown): void {
    // The schema checks whether it is a message.
    this.said.push({ by, message: message as Message });
    this.#look();
  }

  /** Ends the transcript: pending waits reject. */
  end(): void {
    this.#over ??= new Error("The connection has ended.");
    for (const { fail } of this.#waiters.splice(0)) fail(this.#over);
  }

  /** Resolves with what is found, now or later. */
  when<T>(find: (said: readonly Said[]) => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): boolean => {
        const found = find(this.said);
        if (found !== undefined) resolve(found);
        return found !== undefined;
      };
      if (look()) return;
      if (this.#over === undefined) this.#waiters.push({ look, fail: reject });
      else reject(this.#over);
    });
  }

  /** The last messages, for the log of a failed test. */
  get shown(): string {
    const lines = this.said.map(({ by, message }) => `${by === "client" ? "→" : "←"} ${JSON.stringify(message)}`);
    return lines.slice(-SHOWN_MAX).join("\n");
  }

  #look(): void {
    this.#waiters = this.#waiters.filter(({ look }) => !look());
  }
}

const SHOWN_MAX = 80;

export interface Update extends Fields {
  readonly sessionUpdate: string;
}

/** The update in a message, and its session; undefined if there is none. */
export function updateOf({ by, message }: Said): { readonly sessionId: string; readonly update: Update } | undefined {
  if (by !== "agent" || message.method !== "session/update") return undefined;
  return { sessionId: String(message.params?.sessionId), update: message.params?.update as Update };
}

export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {};

/** `_meta.belay` of anything. */
export const belayOf = (value: unknown): Fields => fieldsOf(fieldsOf(fieldsOf(value)._meta).belay);

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The run of an answer to a prompt. */
export function answeredRun({ result, error }: Message): string {
  return textOf(belayOf(result).runId) || textOf(fieldsOf(error?.data).runId) || textOf(result?.messageId);
}
