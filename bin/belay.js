#!/usr/bin/env node
// Starts the command line. Written in the syntax of long ago, so that an old Node can still say that it is too old.
/* global process, console */
(function () {
  // Node opens its debugger on this signal, for everybody on this machine and without a token. A listener keeps it from
  // that; what it opened in the milliseconds before is closed below.
  process.on("SIGUSR1", function () {});

  var version = process.versions.node.split(".");
  var major = Number(version[0]);
  var minor = Number(version[1]);
  if (major < 22 || (major === 22 && minor < 13)) {
    console.error(
      "Belay needs Node.js 22.13 or newer, and this is " +
        process.versions.node +
        ": install a newer one from https://nodejs.org and try again.",
    );
    process.exitCode = 1;
    return;
  }

  if (isDebugged()) return;
  if (process.pid === 1 && becomeInit()) return;

  // The package carries `dist`. A fresh checkout may not have been built yet; there, Node reads the sources themselves.
  import("../dist/cli/main.js")
    .catch(function (error) {
      if (!isMissing(error, "/dist/cli/main.js")) throw error;
      return import("../src/cli/main.ts").catch(function (second) {
        throw isMissing(second, "/src/cli/main.ts") || second.code === "ERR_UNKNOWN_FILE_EXTENSION"
          ? notBuilt()
          : second;
      });
    })
    .catch(function (error) {
      console.error(error && error.name === "NotBuilt" ? error.message : "belay could not start: " + describe(error));
      process.exitCode = 1;
    });

  // Whether Node was started with a debugger that was not asked for by BELAY_INSPECT. Says so.
  function isDebugged() {
    var inspector;
    try {
      inspector = process.getBuiltinModule("node:inspector");
    } catch (_) {
      return false;
    }
    if (!inspector || inspector.url() === undefined || process.env.BELAY_INSPECT === "1") return false;
    var given = (process.env.NODE_OPTIONS || "") + " " + process.execArgv.join(" ");
    inspector.close();
    if (given.indexOf("--inspect") < 0) return false;
    console.error(
      "belay does not start with Node's debugger open: any program on this machine could run code in it.\n" +
        "Remove --inspect from NODE_OPTIONS, or set BELAY_INSPECT=1 if you mean it.",
    );
    process.exitCode = 2;
    return true;
  }

  // The first process of a container inherits every orphan and has to reap it, which Node cannot do. A shell can: this
  // program becomes one, which starts belay again as its child, passes signals on to it and ends as it does. Answers
  // false where this Node cannot become another program; `belay doctor` says what to do then.
  function becomeInit() {
    if (typeof process.execve !== "function") return false;
    var init = [
      // From the first moment on: the kernel drops a signal for which the first process has no handler.
      'for name in TERM HUP USR2; do trap "wanted=$name; kill -$name \\$belay" $name; done',
      // At a terminal Ctrl-C goes to both.
      '[ -t 0 ] && trap : INT || trap "wanted=INT; kill -INT \\$belay" INT',
      "exec 3<&0",
      '"$@" <&3 3<&- &',
      "belay=$!",
      "exec 3<&-",
      '[ -z "$wanted" ] || kill -$wanted $belay',
      // Also reaps every orphan. A signal ends the waiting, not what is waited for.
      "while :; do wait $belay; code=$?; kill -0 $belay 2>/dev/null || exit $code; done",
    ].join("\n");
    try {
      // The child never has the debugger's signal handler, if this Node can do without.
      var flag = "--disable-sigusr1";
      var flags = process.allowedNodeEnvironmentFlags.has(flag) ? [flag] : [];
      var command = [process.execPath].concat(flags, process.execArgv, process.argv.slice(1));
      process.execve("/bin/sh", ["belay-init", "-c", init, "belay-init"].concat(command), process.env);
    } catch (_) {
      return false;
    }
    return true;
  }

  function isMissing(error, file) {
    return error && error.code === "ERR_MODULE_NOT_FOUND" && String(error.url).slice(-file.length) === file;
  }

  function notBuilt() {
    var error = new Error("Belay has not been built here: run `npm run build` first.");
    error.name = "NotBuilt";
    return error;
  }

  function describe(error) {
    return error && error.stack ? error.stack : String(error);
  }
})();
