// All known mistakes: the ones the reference systems made, and the ones that were made here. The search must find each.
import type { Bug } from "./bug.ts";
import { CALL_BUGS } from "./call-bugs.ts";
import { CANCEL_BUGS } from "./cancel-bugs.ts";
import { CRASH_BUGS } from "./crash-bugs.ts";
import { MODEL_BUGS } from "./model-bugs.ts";
import { PROCESS_BUGS } from "./process-bugs.ts";
import { QUEUE_BUGS } from "./queue-bugs.ts";
import { TALK_BUGS } from "./talk-bugs.ts";
import { TIME_BUGS } from "./time-bugs.ts";
import { TROUBLE_BUGS } from "./trouble-bugs.ts";
import { WORLD_BUGS } from "./world-bugs.ts";

export const CORPUS: readonly Bug[] = [
  ...CANCEL_BUGS,
  ...QUEUE_BUGS,
  ...WORLD_BUGS,
  ...CRASH_BUGS,
  ...CALL_BUGS,
  ...TALK_BUGS,
  ...PROCESS_BUGS,
  ...MODEL_BUGS,
  ...TIME_BUGS,
  ...TROUBLE_BUGS,
];
