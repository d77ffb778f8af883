// Which Belay this is.
export { version } from "../../system/version.ts";
