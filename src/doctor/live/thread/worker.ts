import { parentPort, workerData } from "node:worker_threads";
import { assertInvariant } from "../../../errors.ts";
import type { LiveDoctorSetup } from "../live-doctor.ts";
import { serveDoctor } from "./serve-doctor.ts";

assertInvariant(parentPort !== null, "this module runs as a worker thread");
serveDoctor(parentPort, workerData as LiveDoctorSetup);
