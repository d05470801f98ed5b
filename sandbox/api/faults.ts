import type { Scenario } from "../ledger/scenarios.ts";
import { ApiError } from "./api-error.ts";
import { errorResponse, type HttpResponse } from "./http.ts";
import { rateLimitHeaders } from "./rate-limit.ts";

/** The response of a scenario that fails before anything is charged; undefined for others. */
export function faultBeforeCharge(scenario: Scenario, rateLimit: number): HttpResponse | undefined {
  switch (scenario.answer) {
    case "html_500":
      return {
        status: 500,
        headers: { "Content-Type": "text/html" },
        body: "<html><body><h1>500 Internal Server Error</h1></body></html>",
      };
    case "internal_error":
      return errorResponse(new ApiError("internal_error"));
    case "too_many_requests": {
      const answer = errorResponse(new ApiError("too_many_requests"));
      return { ...answer, headers: { ...answer.headers, ...rateLimitHeaders(rateLimit, 0, 1) } };
    }
    default:
      return undefined;
  }
}

/** Makes the response after a charge lost or slow, if the scenario says so. */
export function faultAfterCharge(
  answer: HttpResponse,
  scenario: Scenario,
  slowAnswerMs: number,
): HttpResponse {
  if (scenario.answer === "lost") return { ...answer, lost: true };
  if (scenario.answer === "slow") return { ...answer, delayMs: slowAnswerMs };
  return answer;
}
