// Keeps Node's debugger closed. It has no token: any program on this machine that reaches its port runs code in this
// process. Imported before anything else by `main.ts`, which is what `npm start` runs; `bin/belay.js`, which an
// installed `belay` runs, does the same before it loads this file.
import inspector from "node:inspector";

// Without a listener, Node opens its debugger on this signal.
process.on("SIGUSR1", () => {});

if (inspector.url() !== undefined && process.env.BELAY_INSPECT !== "1") {
  inspector.close();
  // If no option opened it, a signal did, before the line above.
  if (`${process.env.NODE_OPTIONS ?? ""} ${process.execArgv.join(" ")}`.includes("--inspect")) {
    console.error(
      "belay does not start with Node's debugger open: any program on this machine could run code in it.\n" +
        "Remove --inspect from NODE_OPTIONS, or set BELAY_INSPECT=1 if you mean it.",
    );
    process.exit(2);
  }
}
