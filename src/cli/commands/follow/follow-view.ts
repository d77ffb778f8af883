// What is followed, as it is shown: facts as lines, what is being said as running text. Or all of it as lines of JSON.
import { styleText } from "node:util";
import type { Delta, Gap } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { AllSessionsEvent } from "../../../ports/control.ts";
import { eventLine } from "../../shared/format/event-line.ts";
import { plainLine, plainText } from "../../shared/format/plain-text.ts";
import { clip, coloured, styleOf } from "../../shared/format/table.ts";
import { Margin, SPOKEN } from "../../shared/terminal/margin.ts";

export interface FollowViewOptions {
  readonly output: NodeJS.WriteStream;
  readonly form: "text" | "lines";
}

const PROGRESS_CHARS_MAX = 160;

/** What was said since it was last recorded: far more than is ever recorded at once. */
const SPOKEN_CHARS_MAX = 256 * 1024;

export class FollowView {
  readonly #output: NodeJS.WriteStream;
  readonly #form: "text" | "lines";
  /** On a terminal: no text of a model looks like a line of Belay's. */
  readonly #margin: Margin | undefined;
  /** Whose words the open line has; undefined: no line is open. */
  #speaks: string | undefined;
  #atLineStart = true;
  /** Words that were shown while they were said, and are not recorded yet. */
  #spoken = "";

  constructor({ output, form }: FollowViewOptions) {
    this.#output = output;
    this.#form = form;
    this.#margin = output.isTTY ? new Margin(SPOKEN, () => output.columns) : undefined;
  }

  show(heard: Recorded | Delta | Gap | AllSessionsEvent): void {
    if (this.#form === "lines") {
      this.#output.write(`${JSON.stringify(heard)}\n`);
      return;
    }
    switch (heard.type) {
      case "delta":
        this.#speak(heard);
        break;
      case "progress":
        this.#line(`       ${heard.callId}  … ${brief(heard.data)}`, "dim");
        break;
      case "output":
        this.#line(
          `       ${heard.processId}  ${heard.lines} lines, ${heard.bytes} bytes: … ${brief(heard.tail)}`,
          "dim",
        );
        break;
      case "gap":
        this.#line(`       (positions ${heard.from} to ${heard.to} are not kept any more)`, "dim");
        break;
      case "here":
        break;
      case "missed":
        this.#line("       (some events are not at hand any more: look at the sessions)", "dim");
        break;
      case "event":
        this.#line(`${heard.sessionId}${eventLine(heard.event)}`);
        break;
      case "turn.extended":
        if (!this.#wasSpoken(heard.text)) this.#line(eventLine(heard));
        break;
      default:
        this.#line(eventLine(heard));
    }
  }

  /** Whether everybody has read just this: recorded a moment later, it would stand there twice. */
  #wasSpoken(text: string): boolean {
    const spoken = this.#spoken;
    this.#spoken = "";
    return text !== "" && spoken.endsWith(text);
  }

  /** What comes after begins at the beginning of a line. */
  close(): void {
    if (!this.#atLineStart) this.#output.write(this.#margin?.end() ?? "\n");
    this.#atLineStart = true;
    this.#speaks = undefined;
  }

  #speak({ turnId, kind, text }: Extract<Delta, { type: "delta" }>): void {
    const who = `${turnId} ${kind ?? "text"}`;
    if (this.#speaks !== who) this.close();
    this.#speaks = who;
    if (kind !== "reasoning") this.#spoken = `${this.#spoken}${text}`.slice(-SPOKEN_CHARS_MAX);
    const words = plainText(text);
    if (words === "") return;
    const laid = this.#margin?.lay(words) ?? words;
    this.#output.write(kind === "reasoning" ? this.#dim(laid) : laid);
    this.#atLineStart = words.endsWith("\n");
  }

  #line(text: string, look: "plain" | "dim" = "plain"): void {
    this.close();
    const { width } = styleOf(this.#output);
    const fitting = width === undefined ? text : clip(text, width);
    this.#output.write(`${look === "dim" ? this.#dim(fitting) : fitting}\n`);
  }

  #dim(text: string): string {
    return coloured(this.#output) === "with" ? styleText("dim", text, { validateStream: false }) : text;
  }
}

const brief = (data: unknown): string =>
  plainLine(typeof data === "string" ? data : JSON.stringify(data), PROGRESS_CHARS_MAX);
