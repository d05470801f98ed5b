import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { parse, validate } from "graphql";
import { pages } from "../../scripts/docs/pages.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { ended, filledIn } from "../cli/run.ts";
import { clientOf, dataOf, paymentRequest } from "../gateway/callers.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { timeoutMs } from "../until.ts";
import { codeBlocks, root } from "./markdown.ts";

const gateway = ofSuite(() =>
  startTestGateway({ WATCH_TOKEN_SECRET: "w".repeat(32), RECONCILE_AFTER: "1s" }),
);
const folder = directory({ after });
await symlink(join(root, "node_modules"), join(folder, "node_modules"));
await writeFile(join(folder, "package.json"), '{"type":"module"}');

/** How a reader would use a sample, and what it must print. */
interface Trial {
  /** Creates what the sample needs, such as the order that it asks for. */
  readonly before?: () => Promise<unknown>;
  /** Code that is appended to the sample and calls what the sample defines. */
  readonly use?: string;
  readonly prints: RegExp;
}

/** One trial for each TypeScript block of a page, in order. */
const trials: Readonly<Record<string, readonly Trial[]>> = {
  "clients/typescript/README.md": [
    { prints: /^http:\/\/127\.0\.0\.1:\d+\/checkout\/[0-9a-f]+\n$/ },
  ],
  "clients/graphql/README.md": [
    {
      use: `
        for (const state of ["PAID", "FAILED", "PENDING", "CANCELLED", "UNKNOWN"]) {
          console.log(words({ __typename: "Payment", state } as unknown as PayResult));
        }`,
      prints: /^Thank you\n((?!Thank you).+\n){4}$/,
    },
  ],
  "docs/errors.md": [
    {
      use: `
        import { Code, ConnectError } from "@connectrpc/connect";
        console.log(advice(new ConnectError("cut", Code.Unavailable)));`,
      prints: /^the same call again, with the same Idempotency-Key\n$/,
    },
  ],
  "docs/live-updates.md": [
    { before: () => pay("order-1"), prints: /^\S+ payment PAID\n$/ },
    {
      before: () => pay("order-live"),
      use: `
        const stop = watchInBrowser(process.env.WATCH_TOKEN ?? "", "order-live", (status) => {
          console.log(status);
          stop();
        });`,
      prints: /^PAID\n$/,
    },
    {
      use: `
        const stop = watchPlainly(process.env.WATCH_TOKEN ?? "", "order-live", (status) => {
          console.log(status);
          stop();
        });`,
      prints: /^PAYMENT_STATE_PAID\n$/,
    },
  ],
  "docs/money-safety.md": [
    {
      use: `
        import { PaymentMode } from "@payments-gateway/client";
        for (const [externalId, number] of [
          ["good", "4111111111111111"],
          ["declined", "4000000000000770"],
          ["later", "4000000000000663"],
          ["lost", "4000000000000762"],
        ] as const) {
          const pay = () => gateway.payments.createPayment({
            externalId, amount: "5.00", currency: "UAH", mode: PaymentMode.DIRECT, customer: {},
            paymentMethod: {
              method: { case: "cc", value: { number, cvv: "123", expMonth: 12, expYear: 2035 } },
            },
          });
          console.log(externalId, await isPaid(externalId, pay));
        }`,
      prints: /^good true\ndeclined false\nlater false\nlost true\n$/,
    },
  ],
};

const shown = await pagesWith("ts", "tsx", "graphql");

describe("the samples that pages show", () => {
  it("have a trial on each page with TypeScript", async () => {
    assert.deepEqual(Object.keys(trials).toSorted(), await pagesWith("ts", "tsx"));
  });

  for (const page of shown) {
    it(`of ${page} do what they show, against a gateway`, async () => {
      const blocks = await codeBlocks(page);
      for (const { lang, text } of blocks) if (lang === "graphql") await query(text);
      const programs = blocks.filter(({ lang }) => lang === "ts" || lang === "tsx");
      const tried = trials[page] ?? [];
      assert.equal(tried.length, programs.length, "each sample has its trial");
      for (const [i, { text }] of programs.entries()) {
        const trial = tried[i] as Trial;
        await trial.before?.();
        const { code, out, err } = await run(page, text, trial.use ?? "");
        assert.equal(code, 0, out + err);
        assert.match(out + err, trial.prints);
      }
    });
  }
});

async function pagesWith(...languages: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const page of pages()) {
    const blocks = await codeBlocks(page);
    if (blocks.some(({ lang }) => languages.includes(lang ?? ""))) found.push(page);
  }
  return found;
}

async function query(text: string): Promise<void> {
  // A subscription goes on until its reader leaves, so it is not run.
  if (text.startsWith("subscription")) return assert.deepEqual(validate(schema, parse(text)), []);
  // `__typename` shows whether a mutation failed, even if the sample does not select it.
  const typed = text.replace(/(\w+\(input: \{[^}]*\}(?: \})*\) \{)/, "$1 __typename");
  const data = await dataOf(gateway, typed);
  for (const [field, value] of Object.entries<{ __typename?: string } | null>(data)) {
    const failed = value?.__typename?.endsWith("Error") ? value : undefined;
    assert.equal(failed, undefined, `${field} of ${text}`);
  }
}

/** Runs a sample as its reader would, with the addresses of this gateway. */
async function run(page: string, text: string, use: string) {
  const sample = filledIn(text, gateway)
    .replaceAll("https://gateway.example.com", gateway.publicUrl)
    .replaceAll('from "./', `from "${join(root, dirname(page))}/`);
  const file = join(folder, "sample.ts");
  await writeFile(file, `${sample}\n${use}\nexport {};\n`);
  const child = spawn(process.execPath, ["--experimental-eventsource", "--no-warnings", file], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      WATCH_TOKEN: await watchToken("order-live"),
    },
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  return await ended(child);
}

async function watchToken(externalId: string): Promise<string> {
  const { createWatchToken } = await dataOf(
    gateway,
    `mutation { createWatchToken(input: { externalId: "${externalId}", kind: PAYMENT }) { ... on WatchToken { token } } }`,
  );
  return createWatchToken.token;
}

function pay(externalId: string): Promise<unknown> {
  return clientOf(PaymentService, gateway).createPayment(paymentRequest(externalId));
}
