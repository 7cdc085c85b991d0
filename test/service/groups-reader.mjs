/** A trainer that reads groups of a service which may die at any moment. */
import { setTimeout as sleep } from "node:timers/promises";

/** True for the errors of a broken connection. */
const isCutOff = (error) =>
  error instanceof TypeError || error instanceof SyntaxError || error.name === "AbortError";

export class GroupsReader {
  /** The number of streams that ended in the middle of a line. */
  cutLines = 0;
  /** The number of streams that were opened. */
  streams = 0;
  #service;

  constructor(service) {
    this.#service = service;
  }

  /** Makes a call until it is answered. */
  async call(method, at, body) {
    for (;;) {
      this.#service.check();
      try {
        const reply = await fetch(this.#service.url + at, {
          method,
          headers: { "content-type": "application/json" },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        if (reply.status < 300) return await reply.json();
        if (reply.status !== 503) throw new Error(`${method} ${at}: ${await reply.text()}`);
      } catch (error) {
        if (!isCutOff(error)) throw error;
      }
      await sleep(50);
    }
  }

  /**
   * The lines of one stream, parsed, each with its `text`, until it ends or breaks. Yields nothing if
   * no service listens. An answer of an error is yielded as `{type: "error"}`.
   */
  async *stream(query) {
    this.#service.check();
    const stop = new AbortController();
    let rest = "";
    try {
      const reply = await fetch(`${this.#service.url}/v1/groups?${query}`, { signal: stop.signal });
      if (!reply.ok) {
        const { error } = await reply.json();
        yield { type: "error", status: reply.status, ...error };
        return;
      }
      this.streams += 1;
      for await (const bytes of reply.body) {
        this.#service.received(bytes.length);
        const lines = (rest + Buffer.from(bytes).toString("latin1")).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const text = Buffer.from(line, "latin1").toString("utf8");
          yield { ...JSON.parse(text), text };
        }
      }
    } catch (error) {
      if (!isCutOff(error)) throw error;
      if (rest !== "") this.cutLines += 1;
    } finally {
      stop.abort();
    }
  }
}
