// Names the causes of a mismatch between a trainer's logprobs and the engine's, as `turnwright doctor` does.
import { diagnoseRun, diagnosisText } from "turnwright/doctor";

/** Throws if the trainer's logprobs of a run's rows differ from the engine's by more than is healthy. */
export async function requireHealthy(run: string, trainerLogprobs: string): Promise<void> {
  const diagnosis = await diagnoseRun(run, { trainerLogprobs });
  console.log(diagnosisText(diagnosis));
  if (diagnosis.hasFinding) throw new Error(`The trainer and the engine differ: ${diagnosis.text}`);
}
