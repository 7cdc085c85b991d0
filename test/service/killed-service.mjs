/** A `turnwright serve` process that dies of SIGKILL at random moments, and starts again on its folder. */
import { spawn } from "node:child_process";
import path from "node:path";
import { chance, freePort } from "../simulation/chance.mjs";

const main = path.resolve(import.meta.dirname, "../../dist/src/cli/main.js");

export class KilledService {
  /** The number of kills up to now. */
  kills = 0;
  /** The number of kills that a reader's bytes triggered. */
  killsInStream = 0;
  /** What it wrote about errors of its own. */
  troubles = [];
  url;
  #child;
  #isOver = false;
  /** Bytes that the reader still receives before the next kill. `undefined`: a timer kills. */
  #bytesLeft;
  #running;
  /** Set when the service ended by itself. */
  #failure;

  /** Starts it. `args` are those of `turnwright serve`; `longestMs` is the longest time to a kill. */
  static async start(args, { kills, seed, longestMs }) {
    const service = new KilledService();
    const port = await freePort();
    service.url = `http://127.0.0.1:${port}`;
    const command = [main, "serve", ...args, "--port", String(port), "--quiet"];
    const random = chance(seed);
    service.#running = service.#run(command, { kills, random, longestMs }).catch(
      (error) => (service.#failure = error),
    );
    return service;
  }

  /** Throws if the service ended by itself. */
  check() {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Counts bytes that the reader received. Kills the service if their number was chosen for it. */
  received(count) {
    if (this.#bytesLeft === undefined) return;
    this.#bytesLeft -= count;
    if (this.#bytesLeft > 0) return;
    this.#bytesLeft = undefined;
    this.killsInStream += 1;
    this.#child.kill("SIGKILL");
  }

  async end() {
    this.#isOver = true;
    this.#child.kill("SIGTERM");
    await this.#running;
    this.check();
  }

  async #run(command, { kills, random, longestMs }) {
    while (!this.#isOver) {
      this.#child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"] });
      const child = this.#child;
      let stderr = "";
      child.stderr.on("data", (text) => (stderr += text));
      const ended = new Promise((resolve) => child.on("exit", (...how) => resolve(how)));
      const dice = random();
      // One in ten kills comes before the service listens.
      if (dice > 0.1)
        await Promise.race([new Promise((resolve) => child.stdout.once("data", resolve)), ended]);
      let timer;
      if (this.kills < kills && dice > 0.6)
        // Half of these kills come with the first bytes of a line.
        this.#bytesLeft = random() < 0.5 ? 1 : Math.ceil(random() * 600_000);
      else if (this.kills < kills)
        timer = setTimeout(() => child.kill("SIGKILL"), random() * longestMs);
      const [code, signal] = await ended;
      clearTimeout(timer);
      this.#bytesLeft = undefined;
      if (stderr.includes("trouble:")) this.troubles.push(stderr);
      if (signal === "SIGKILL") this.kills += 1;
      else if (!this.#isOver)
        throw new Error(`The service ended with ${code ?? signal}: ${stderr}`);
    }
  }
}
