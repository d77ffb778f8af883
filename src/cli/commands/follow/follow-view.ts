// Prints followed events: events as lines, and deltas as running text. Or everything as lines of JSON.
import { styleText } from "node:util";
import type { Delta, Gap } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { AllSessionsEvent } from "../../../ports/control.ts";
import { eventLine } from "../../shared/format/event-line.ts";
import { plainLine, plainText } from "../../shared/format/plain-text.ts";
import { clip, coloured, styleOf } from "../../shared/format/table.ts";
import { AGENT_MARK, Margin } from "../../shared/terminal/margin.ts";

export interface FollowViewOptions {
  readonly output: NodeJS.WriteStream;
  readonly form: "text" | "lines";
}

const PROGRESS_CHARS_MAX = 160;

/** How much unrecorded text is kept: far more than is ever recorded at once. */
const UNRECORDED_CHARS_MAX = 256 * 1024;

export class FollowView {
  readonly #output: NodeJS.WriteStream;
  readonly #form: "text" | "lines";
  /** Set on a terminal, so that no text of a model looks like a line of Belay's. */
  readonly #margin: Margin | undefined;
  /** The source of the open line; undefined: no line is open. */
  #source: string | undefined;
  #atLineStart = true;
  /** Text that was shown from deltas, and is not recorded yet. */
  #unrecorded = "";

  constructor({ output, form }: FollowViewOptions) {
    this.#output = output;
    this.#form = form;
    this.#margin = output.isTTY ? new Margin(AGENT_MARK, () => output.columns) : undefined;
  }

  show(event: Recorded | Delta | Gap | AllSessionsEvent): void {
    if (this.#form === "lines") {
      this.#output.write(`${JSON.stringify(event)}\n`);
      return;
    }
    switch (event.type) {
      case "delta":
        this.#append(event);
        break;
      case "progress":
        this.#line(`       ${event.callId}  … ${brief(event.data)}`, "dim");
        break;
      case "output":
        this.#line(
          `       ${event.processId}  ${event.lines} lines, ${event.bytes} bytes: … ${brief(event.tail)}`,
          "dim",
        );
        break;
      case "gap":
        this.#line(`       (positions ${event.from} to ${event.to} are not kept any more)`, "dim");
        break;
      case "here":
        break;
      case "missed":
        this.#line("       (some events are no longer available here: see the sessions)", "dim");
        break;
      case "event":
        this.#line(`${event.sessionId}${eventLine(event.event)}`);
        break;
      case "turn.extended":
        if (!this.#wasShown(event.text)) this.#line(eventLine(event));
        break;
      default:
        this.#line(eventLine(event));
    }
  }

  /** Whether recorded text was already shown from deltas, so that it need not be printed again. */
  #wasShown(text: string): boolean {
    const shown = this.#unrecorded;
    this.#unrecorded = "";
    return text !== "" && shown.endsWith(text);
  }

  /** Ends the open line. */
  close(): void {
    if (!this.#atLineStart) this.#output.write(this.#margin?.end() ?? "\n");
    this.#atLineStart = true;
    this.#source = undefined;
  }

  #append({ turnId, kind, text }: Extract<Delta, { type: "delta" }>): void {
    const source = `${turnId} ${kind ?? "text"}`;
    if (this.#source !== source) this.close();
    this.#source = source;
    if (kind !== "reasoning") this.#unrecorded = `${this.#unrecorded}${text}`.slice(-UNRECORDED_CHARS_MAX);
    const safe = plainText(text);
    if (safe === "") return;
    const formatted = this.#margin?.format(safe) ?? safe;
    this.#output.write(kind === "reasoning" ? this.#dim(formatted) : formatted);
    this.#atLineStart = safe.endsWith("\n");
  }

  #line(text: string, style: "plain" | "dim" = "plain"): void {
    this.close();
    const { width } = styleOf(this.#output);
    const fitting = width === undefined ? text : clip(text, width);
    this.#output.write(`${style === "dim" ? this.#dim(fitting) : fitting}\n`);
  }

  #dim(text: string): string {
    return coloured(this.#output) === "with" ? styleText("dim", text, { validateStream: false }) : text;
  }
}

const brief = (data: unknown): string =>
  plainLine(typeof data === "string" ? data : JSON.stringify(data), PROGRESS_CHARS_MAX);
