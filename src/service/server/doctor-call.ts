import { describeError } from "../../errors.ts";
import { ClientError } from "../../gateway/client-error.ts";
import { bodyChunks } from "../../gateway/server/read-request.ts";
import type {
  AddedRows,
  LiveDiagnoseOptions,
  LiveDiagnosis,
} from "../../doctor/live/live-doctor.ts";
import { defaultThresholds, type Thresholds } from "../../doctor/diagnosis.ts";
import type { ServiceDoctor } from "../doctor/service-doctor.ts";
import { ServiceError } from "../service-error.ts";
import { readParameters, toCallError } from "./read-call.ts";

/** Maximum size of a post of logprobs, in bytes, as sent and decoded. */
const maxPostSize = 64 * 1024 * 1024;

const thresholdNames = Object.keys(defaultThresholds) as (keyof Thresholds)[];

/**
 * Reads a post of a trainer's logprobs while it arrives, and compares its rows.
 *
 * @throws ServiceError `bad-request`, `too-large`, `bad-encoding` or `queue-full`.
 */
export async function addTrainerLogprobs(
  doctor: ServiceDoctor,
  request: Request,
): Promise<AddedRows> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/x-ndjson" && type !== "application/json") {
    throw new ServiceError(
      "bad-request",
      "Cannot read the body: send one JSON line a row, as application/x-ndjson",
    );
  }
  return await doctor.add(received(request));
}

/** Yields the body as it arrives. A body that breaks off is a fault of the caller. */
async function* received(request: Request): AsyncGenerator<Uint8Array> {
  try {
    yield* bodyChunks(request, { limit: maxPostSize });
  } catch (error) {
    if (error instanceof ClientError) throw toCallError(error);
    const message = `Cannot read the body: it broke off (${describeError(error)})`;
    throw new ServiceError("bad-request", message, { cause: error });
  }
}

/**
 * Diagnoses the newest rows as the parameters ask for.
 *
 * @throws ServiceError `bad-request` for wrong parameters, or `queue-full`.
 */
export async function diagnoseLive(doctor: ServiceDoctor, url: URL): Promise<LiveDiagnosis> {
  return await doctor.diagnose(readDiagnoseOptions(url));
}

function readDiagnoseOptions(url: URL): LiveDiagnoseOptions {
  const { lag, ...given } = readParameters(url, ["lag", ...thresholdNames]);
  if (lag !== undefined && !/^-?\d{1,15}$/.test(lag)) {
    throw new ServiceError("bad-request", '"lag" is wrong: expected a whole number, such as 0');
  }
  const thresholds = Object.entries(given).map(([name, text]) => {
    const value = Number(text);
    if (text.trim() !== "" && value >= 0 && Number.isFinite(value)) return [name, value] as const;
    throw new ServiceError("bad-request", `"${name}" is wrong: expected a number, 0 or more`);
  });
  return {
    ...(thresholds.length > 0 && { thresholds: Object.fromEntries(thresholds) }),
    ...(lag !== undefined && { assumedLag: Number(lag) }),
  };
}
