// Reads an event stream as a browser does: an incomplete frame at the end is discarded.

export interface Frame {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Parses chunks of bytes, split anywhere. */
export class SseReader {
  readonly frames: Frame[] = [];
  #rest = Buffer.alloc(0);

  /** Returns the frames that these bytes complete. */
  take(bytes: Buffer): readonly Frame[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const found: Frame[] = [];
    for (let end = this.#rest.indexOf("\n\n"); end !== -1; end = this.#rest.indexOf("\n\n")) {
      const frame = parsed(this.#rest.subarray(0, end).toString("utf8"));
      this.#rest = this.#rest.subarray(end + 2);
      if (frame !== undefined) found.push(frame);
    }
    this.frames.push(...found);
    return found;
  }
}

/** Undefined for a comment or a reconnection delay. */
function parsed(text: string): Frame | undefined {
  const lines = text.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]);
  const field = (name: string): string | undefined => lines.find(([one]) => one === name)?.[1];
  const data = field("data");
  return data === undefined ? undefined : { id: field("id"), event: field("event") ?? "", data };
}
