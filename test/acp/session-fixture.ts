// What one set of tests shares: a way to reach Belay, a version of the protocol, and an editor that is connected.
// After each test every law of the protocol holds, and at the end every message was a valid one.
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
  #stage: AcpFixture | undefined;
  #peers: Peer[] = [];
  #names = 0;

  constructor(transport: Transport, version: Version) {
    this.transport = transport;
    this.version = version;
    beforeAll(async () => {
      this.#stage = await openAcpFixture(transport);
      await this.connect();
    }, OPEN_MS_MAX);
    afterEach(() => {
      for (const { transcript } of this.#peers) {
        expect(brokenLaws(transcript.said, version, { end: "open" })).toEqual([]);
      }
    });
    afterAll(async () => {
      for (const peer of this.#peers.toReversed()) await peer.drop();
      await this.#stage?.close();
      for (const { transcript } of this.#peers) {
        expect(invalidMessages(withoutRefused(transcript.said), version)).toEqual([]);
      }
    }, OPEN_MS_MAX);
  }

  get stage(): AcpFixture {
    if (this.#stage === undefined) throw new Error("The scene was not opened.");
    return this.#stage;
  }

  get gates(): AcpFixture["gates"] {
    return this.stage.gates;
  }

  /** The editor that is there from the beginning. */
  get peer(): Peer {
    const [peer] = this.#peers;
    if (peer === undefined) throw new Error("The scene was not opened.");
    return peer;
  }

  /** Another one. */
  async connect(): Promise<Peer> {
    const peer = await Peer.open(await this.stage.connect(), this.version);
    this.#peers.push(peer);
    return peer;
  }

  /** A session of its own, for one test. */
  async session(permits?: Permits): Promise<PeerSession> {
    onTestFailed(() => console.error(this.#peers.map(({ transcript }) => transcript.shown).join("\n---\n")));
    return this.peer.newSession(this.stage.dir, permits);
  }

  /** A name for a gate that no other test has. */
  gate(): string {
    this.#names += 1;
    return `gate-${this.#names}`;
  }
}

/** What a test has sent in order to be refused need not be valid; what it was refused with must be. */
function withoutRefused(said: readonly Said[]): readonly Said[] {
  const refused = new Set(
    said.flatMap(({ by, message }) => (by === "agent" && message.error !== undefined ? [message.id] : [])),
  );
  return said.filter(({ by, message }) => by === "agent" || message.id === undefined || !refused.has(message.id));
}
