import { createAdmission } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";

/** An intake that admits every call. */
export const openIntake = (maxBytes?: number) =>
  new Intake({
    admission: createAdmission({ maxCalls: undefined }),
    budget: createMemoryBudget(maxBytes),
  });
