// All stories.
import { CANCEL_STORIES } from "./cancel-stories.ts";
import { LIFE_STORIES } from "./life-stories.ts";
import { QUEUE_STORIES } from "./queue-stories.ts";
import type { Story } from "./story.ts";

export const STORIES: readonly Story[] = [...QUEUE_STORIES, ...CANCEL_STORIES, ...LIFE_STORIES];
