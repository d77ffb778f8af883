// The fixture of one set of tests: a transport, a protocol version, and a connected editor. Checks every law of the
// protocol after each test, and at the end that every message was valid.
import { afterAll, afterEach, beforeAll, expect, onTestFailed } from "vitest";
import { type AcpFixture, openAcpFixture, type Transport } from "./acp-fixture.ts";
import { brokenLaws } from "./laws.ts";
import { invalidMessages } from "./message-schema.ts";
import { Peer, type PeerSession, type Permits } from "./peer.ts";
import type { Said, Version } from "./transcript.ts";

const OPEN_MS_MAX = 60_000;

export class SessionFixture {
  readonly version: Version;
  readonly transport: Transport;
  #fixture: AcpFixture | undefined;
  #peers: Peer[] = [];
  #names = 0;

  constructor(transport: Transport, version: Version) {
    this.transport = transport;
    this.version = version;
    beforeAll(async () => {
      this.#fixture = await openAcpFixture(transport);
      await this.connect();
    }, OPEN_MS_MAX);
    afterEach(() => {
      for (const { transcript } of this.#peers) {
        expect(brokenLaws(transcript.said, version, { end: "open" })).toEqual([]);
      }
    });
    afterAll(async () => {
      for (const peer of this.#peers.toReversed()) await peer.drop();
      await this.#fixture?.close();
      for (const { transcript } of this.#peers) {
        expect(invalidMessages(withoutRefused(transcript.said), version)).toEqual([]);
      }
    }, OPEN_MS_MAX);
  }

  get acp(): AcpFixture {
    if (this.#fixture === undefined) throw new Error("The fixture was not opened.");
    return this.#fixture;
  }

  get gates(): AcpFixture["gates"] {
    return this.acp.gates;
  }

  /** The editor that is connected from the start. */
  get peer(): Peer {
    const [peer] = this.#peers;
    if (peer === undefined) throw new Error("The fixture was not opened.");
    return peer;
  }

  /** Connects another editor. */
  async connect(): Promise<Peer> {
    const peer = await Peer.open(await this.acp.connect(), this.version);
    this.#peers.push(peer);
    return peer;
  }

  /** A separate session for one test. */
  async session(permits?: Permits): Promise<PeerSession> {
    onTestFailed(() => console.error(this.#peers.map(({ transcript }) => transcript.shown).join("\n---\n")));
    return this.peer.newSession(this.acp.dir, permits);
  }

  /** A unique name for a gate. */
  gate(): string {
    this.#names += 1;
    return `gate-${this.#names}`;
  }
}

/** Drops requests that were refused, which may be invalid; the refusals themselves must be valid. */
function withoutRefused(said: readonly Said[]): readonly Said[] {
  const refused = new Set(
    said.flatMap(({ by, message }) => (by === "agent" && message.error !== undefined ? [message.id] : [])),
  );
  return said.filter(({ by, message }) => by === "agent" || message.id === undefined || !refused.has(message.id));
}
