// The spine's figures.
import { runParts } from "../parts.ts";
import type { Figures } from "../report.ts";

const PARTS = ["import", "throughput", "cancel", "memory", "growth", "start"];

export const spine = (progress: (line: string) => void): Promise<Figures> => runParts(import.meta.url, PARTS, progress);
