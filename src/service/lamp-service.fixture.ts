import type { ColumnSpecs } from "../columns/index.ts";
import { startDoctorHere } from "../doctor/live/thread/start-doctor.ts";
import type { Engine } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { preparedEngine, says } from "../episode/lamp-episode.fixture.ts";
import { Redactor } from "../secrets/redactor.ts";
import { lamps, lampSetup } from "../run/lamp-run.fixture.ts";
import { fakeMachine } from "../run/machine.fixture.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { withInventedColumns } from "../testing/column-engine.ts";
import type { BatchRequest } from "./batch-request.ts";
import type { RolloutServiceOptions } from "./rollout-service-options.ts";
import { RolloutService } from "./rollout-service.ts";
import { createServiceApp, type ServiceAppOptions } from "./server/service-app.ts";

/** Says goodbye at once, after the wait in `before`. */
export function lampEngine(
  before: (...call: Parameters<Engine["generate"]>) => unknown = () => {},
): Engine {
  return {
    ...preparedEngine([]),
    async generate(...call) {
      await before(...call);
      call[1]?.signal?.throwIfAborted();
      return await preparedEngine([says("Goodbye!")]).generate(...call);
    },
  };
}

let pid = 100;

/** Opens a service with fifty lamps, as a process of its own. */
export async function openLamps(
  dir: string,
  {
    engine = lampEngine(),
    environment = lamps(50),
    ...options
  }: Partial<RolloutServiceOptions> & {
    readonly engine?: Engine;
    readonly environment?: Environment;
  } = {},
): Promise<RolloutService> {
  pid += 1;
  return await RolloutService.open({
    dir,
    setup: lampSetup({ environment: { ...environment, repeatable: true }, engine }),
    manifest: {
      ...testManifest,
      found: {
        ...testManifest.found,
        vocabularySize: createCharacterRenderer().codec.vocabularySize,
      },
    },
    concurrency: 4,
    attempts: 1,
    maxQueued: 1000,
    lock: { machine: fakeMachine({ pid }) },
    doctor: { start: startDoctorHere },
    ...options,
  });
}

/** A setup with fifty lamps whose engine returns invented side columns. */
export function columnSetup(columns: ColumnSpecs): RolloutServiceOptions["setup"] {
  const environment = { ...lamps(50), repeatable: true };
  return { ...lampSetup({ environment, engine: withInventedColumns(lampEngine()) }), columns };
}

/** The answer that a caller receives, with the body read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Calls a service without a network. */
export function caller(
  service: RolloutService,
  options: Partial<ServiceAppOptions> = {},
): (method: string, path: string, body?: unknown, init?: RequestInit) => Promise<Answer> {
  const redactor = new Redactor();
  const place = { version: "0.1.0", checksHost: true, redactor };
  const app = createServiceApp(service, { ...place, ...options });
  return async (method, path, body, init = {}) => {
    const sent =
      body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const response = await app.request(path, { method, ...sent, ...init });
    const text = await response.text();
    const isLines = response.headers.get("content-type") === "application/x-ndjson";
    return {
      status: response.status,
      headers: response.headers,
      body: isLines ? text.split("\n").slice(0, -1) : JSON.parse(text),
    };
  };
}

/** Two attempts at each of two lamps. */
export const twoLamps = {
  key: "step-1",
  split: "test",
  tasks: [4, 7],
  samples: 2,
  seed: 5,
} satisfies Partial<BatchRequest>;
