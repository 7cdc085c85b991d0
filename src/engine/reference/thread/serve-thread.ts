import { Decoder } from "../decoder.ts";
import type { Kernels } from "../kernels/build-kernels.ts";
import type { DecoderShape } from "../model/decoder-shape.ts";
import type { WorkAddresses } from "../model/memory-plan.ts";
import type { WeightAddresses } from "../model/weight-plan.ts";
import type { WasmMemory, WasmModule } from "../wasm/web-assembly.ts";
import { instantiate } from "../wasm/web-assembly.ts";
import { ContinuousBatch } from "./continuous-batch.ts";
import type { TokenMessage, ThreadReply, ThreadRequest } from "./thread-message.ts";
import { generationGoal, scoringGoal } from "./token-goal.ts";

/** The data that a thread works with. It can be posted to a worker. */
export interface ThreadSetup {
  readonly shape: DecoderShape;
  readonly weights: WeightAddresses;
  readonly work: WorkAddresses;
  readonly memory: WasmMemory;
  readonly module: WasmModule;
}

/** The port through which a thread communicates: a `MessagePort`. */
interface ThreadPort {
  on(event: "message", listener: (request: ThreadRequest) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  postMessage(message: ThreadReply | TokenMessage): void;
}

/**
 * Serves many requests concurrently. Repeats while there is work and the port is open: computes a step, posts its
 * messages, and receives new requests.
 */
export function serveThread(port: ThreadPort, setup: ThreadSetup): void {
  const { shape, weights, work, memory, module } = setup;
  const kernels = instantiate(module, memory) as Kernels;
  const batch = new ContinuousBatch(new Decoder({ shape, kernels, weights, work, memory }), {
    slotCount: work.slotCount,
    prefillRowCount: work.rowCount - work.slotCount,
    blockCount: work.blockCount,
  });
  let isStepping = false;
  let isClosed = false;

  function step(): void {
    isStepping = !batch.isIdle && !isClosed;
    if (!isStepping) return;
    for (const message of batch.step()) port.postMessage(message);
    setImmediate(step);
  }

  port.on("close", () => {
    isClosed = true;
  });
  port.on("message", (request) => {
    switch (request.type) {
      case "generate":
        batch.add(generationGoal(request, shape.endTokenIds));
        break;
      case "score":
        batch.add(scoringGoal(request));
        break;
      case "abort":
        batch.abort(request.key);
        break;
      case "cut-short": {
        const reply = batch.cutShort(request.key);
        if (reply !== undefined) port.postMessage(reply);
        break;
      }
      case "clear-cache":
        batch.clearCache();
        break;
    }
    if (isStepping) return;
    isStepping = true;
    setImmediate(step);
  });
}
