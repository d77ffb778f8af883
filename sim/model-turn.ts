// A turn of the real agent loop over a simulated model: what it has asked of the model, and how it ended.
import type { Turn, TurnResult } from "../src/ports/agent.ts";
import { TurnActor } from "./actors.ts";
import type { ParkedRequest, Purpose } from "./parked-request.ts";

export class ModelTurn extends TurnActor {
  readonly requests: ParkedRequest[] = [];
  /** When it was asked to stop, by a run that has used up what it may, or goes round in circles. */
  stopsItself = false;

  constructor(turn: Turn, resolve: (result: TurnResult | undefined) => void, reject: (error: unknown) => void) {
    super(turn, { stubborn: false, metered: false }, resolve, reject);
  }

  /** The one that the loop waits for. */
  get request(): ParkedRequest | undefined {
    const last = this.requests.at(-1);
    return last?.open === true ? last : undefined;
  }

  override get movable(): boolean {
    return this.request !== undefined;
  }

  /** Also what the loop says behind it, of itself. */
  override hasSaid(text: string, from: number): boolean {
    return super.hasSaid(withoutRemark(text), from);
  }

  /** Those for its own answer, or for a summary. */
  of(purpose: Purpose): readonly ParkedRequest[] {
    return this.requests.filter((request) => request.purpose === purpose);
  }

  /** The loop has returned, or has thrown. */
  over(ended: PromiseSettledResult<TurnResult | undefined>): void {
    if (ended.status === "fulfilled") {
      this.end = "completed";
      this.resolve(ended.value);
    } else {
      this.end = "failed";
      this.reject(ended.reason);
    }
  }

  /** The model says what there is to say, and the loop goes on from there. */
  override complete(): void {
    const { request } = this;
    if (request === undefined) return;
    request.connect();
    if (request.text === "") this.say(request, "Done.");
    request.finish("stop", { inputTokens: 7, outputTokens: 3 }, "closes");
  }

  say(request: ParkedRequest, text: string): void {
    if (request.purpose === "turn" && !request.aborted) this.text += text;
    request.say(text);
  }
}

/** What is said about calls that were not made is the loop's own. */
export const withoutRemark = (text: string): string => text.replace(/\n?\[\d+ of the calls were not made\.\]$/, "");
