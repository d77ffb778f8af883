// Runs any agent of the Agent Client Protocol as an agent of Belay: it gets sessions, a queue, receipts, events,
// approvals and a reliable stop without any change.
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { Prompt } from "../../../core/model/prompt.ts";
import type { Message } from "../../../core/read/transcript.ts";
import type { Agent, Turn, TurnResult } from "../../../ports/agent.ts";
import { AgentError } from "./agent-errors.ts";
import { AgentProcesses } from "./agent-processes.ts";
import { checkExternalAgent, type ExternalAgentOptions } from "./external-agent-options.ts";
import { ExternalTurn } from "./external-turn.ts";
import { historyText } from "./history-text.ts";
import { promptBlocks, textBlock } from "./prompt-blocks.ts";
import { RunProcesses } from "./run-processes.ts";
import type { PreparedSession } from "./session-setup.ts";
import { Steering } from "./steering.ts";

export type { ExternalAgentOptions, SessionResources } from "./external-agent-options.ts";

export function externalAgent(options: ExternalAgentOptions): Agent {
  const processes = new AgentProcesses(checkExternalAgent(options));
  const agent = async (turn: Turn): Promise<TurnResult> => {
    const messages = await turn.transcript();
    const prepared = await processes.acquire(turn, messages);
    try {
      const result = await runTurn(turn, prepared, messages);
      // If this fails they still end with the agent's process.
      if (!turn.signal.aborted) await new RunProcesses(turn, prepared.agentProcess).handOver().catch(() => undefined);
      return result;
    } finally {
      processes.release(prepared.agentProcess);
    }
  };
  // After a crash of Belay the agent's progress is unknown, so the work must not be repeated.
  return Object.assign(agent, { onCrash: "lose" } as const);
}

/**
 * Sends the prompt, and further prompts for messages that arrived meanwhile and that the agent could not accept while
 * it worked.
 */
async function runTurn(turn: Turn, prepared: PreparedSession, messages: readonly Message[]): Promise<TurnResult> {
  const { agentProcess } = prepared;
  const meter = { input: 0, output: 0 };
  turn.meter(() => ({ usage: estimate(meter) }));
  const before = prepared.memory === "anew" ? historyText(messages, turn.runId) : "";
  emitRemarks(turn, prepared, before);
  let notes = notesOf(messages, turn);
  let next = [...firstBlocks(turn, prepared, messages, before), ...blocksOf(await turn.takeSteers(), prepared)];
  for (;;) {
    meter.input += charsOf(next);
    const { reason, left } = await runPrompt(turn, prepared, next, meter);
    // Taken again, so that a message that arrived during the last update is not left behind.
    const more = reason === "end_turn" && !turn.signal.aborted ? [...left, ...(await turn.takeSteers())] : left;
    // Takes the notes for the model that arrived meanwhile. The agent gets them with its next prompt.
    const all = notesOf(await turn.transcript(), turn);
    agentProcess.pendingNotes.push(...all.slice(notes.length));
    notes = all;
    if (more.length === 0 || turn.signal.aborted)
      return { finish: finishOf(reason, agentProcess.name), usage: estimate(meter) };
    turn.emit("\n\n");
    next = [...pendingNotes(prepared), ...blocksOf(more, prepared)];
  }
}

interface Meter {
  input: number;
  output: number;
}

async function runPrompt(
  turn: Turn,
  { agentProcess, sessionId }: PreparedSession,
  blocks: readonly ContentBlock[],
  meter: Meter,
): Promise<{ readonly reason: string; readonly left: readonly Prompt[] }> {
  const steering = new Steering(turn, agentProcess, sessionId);
  const one = new ExternalTurn(turn, agentProcess, sessionId);
  try {
    const reason = await one.run(blocks);
    const left = await steering.end();
    // An agent that finishes despite the stop has finished.
    if (turn.signal.aborted && reason === "cancelled") throw turn.signal.reason;
    return { reason, left };
  } finally {
    meter.output += one.outputChars;
    void steering.end();
  }
}

/** Emits remarks before the answer. */
function emitRemarks(turn: Turn, { agentProcess, leftOut, isReplacement }: PreparedSession, before: string): void {
  if (isReplacement)
    turn.emit(`[${agentProcess.name} did not answer after its commands were ended: it was started again.]\n\n`);
  if (leftOut.length > 0) turn.emit(`[${agentProcess.name} cannot take these MCP servers: ${leftOut.join(", ")}.]\n\n`);
  if (before === "") return;
  turn.emit(
    `[${agentProcess.name} does not remember this session. It was given the conversation so far, as text.]\n\n`,
  );
}

function firstBlocks(
  turn: Turn,
  prepared: PreparedSession,
  messages: readonly Message[],
  before: string,
): ContentBlock[] {
  const { prompt, runId } = turn;
  const again = messages.some((one) => one.role === "assistant" && one.runId === runId && one.again === true);
  prepared.agentProcess.pendingNotes.push(...notesOf(messages, turn));
  return [
    ...(before === ""
      ? []
      : [textBlock(`The conversation in this session so far:\n\n${before}\n\nEnd of the conversation.`)]),
    ...pendingNotes(prepared),
    ...(again ? [textBlock(CONTINUE)] : []),
    ...promptBlocks(prompt, prepared.agentProcess.capabilities),
  ];
}

/** Notes for the model of this run. */
const notesOf = (messages: readonly Message[], { runId }: Turn): readonly string[] =>
  messages.flatMap((one) => (one.role === "note" && one.runId === runId ? [one.item.text] : []));

const pendingNotes = ({ agentProcess }: PreparedSession): ContentBlock[] =>
  agentProcess.pendingNotes.splice(0).map((note) => textBlock(`[${note}]`));

const CONTINUE =
  "[You had begun to work on the following prompt when the program around you was shut down. Continue where you " +
  "stopped: check first what is done already, and do not repeat it.]";

const blocksOf = (prompts: readonly Prompt[], { agentProcess }: PreparedSession): ContentBlock[] =>
  prompts.flatMap((prompt) => promptBlocks(prompt, agentProcess.capabilities));

function finishOf(reason: string, name: string): NonNullable<TurnResult["finish"]> {
  switch (reason) {
    case "end_turn":
      return "stop";
    case "max_tokens":
      return "length";
    case "refusal":
      return "refusal";
    case "cancelled":
      // A cancel through Belay is recorded first, so this one came from the agent.
      throw new AgentError("agent_stopped", `${name} reported a cancel that Belay had not requested.`);
    default:
      return "other";
  }
}

/** Estimates the usage, which the protocol does not report: four characters per token. */
const estimate = ({ input, output }: Meter): NonNullable<TurnResult["usage"]> => ({
  inputTokens: Math.ceil(input / CHARS_PER_TOKEN),
  outputTokens: Math.ceil(output / CHARS_PER_TOKEN),
  estimated: true,
});

const CHARS_PER_TOKEN = 4;

const charsOf = (blocks: readonly ContentBlock[]): number =>
  blocks.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0);
