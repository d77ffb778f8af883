// Many commands at one server at the same time: whether each gets its answer, and what that takes.
import { runParts } from "../parts.ts";
import type { JudgedFigures } from "../report.ts";

const PARTS = ["commands"];

export async function crowd(progress: (line: string) => void): Promise<JudgedFigures> {
  const all = await runParts(import.meta.url, PARTS, progress);
  const { crowdRuns, crowdRunsCompleted, crowdCancels, crowdRunsCancelled } = all.ours;
  const missed = [
    ...(crowdRunsCompleted === crowdRuns ? [] : [`${crowdRunsCompleted} of ${crowdRuns} runs have completed.`]),
    ...(crowdRunsCancelled === crowdCancels
      ? []
      : [`${crowdRunsCancelled} of ${crowdCancels} cancels were carried out.`]),
  ];
  return { ...all, missed };
}
