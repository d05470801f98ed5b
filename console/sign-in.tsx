import { useState } from "preact/hooks";
import { bearerText } from "../src/auth/caller.ts";
import { capital } from "./parts.tsx";

/** Asks for an operator's credentials; `refusal` is why the previous ones were rejected. */
export function SignIn(props: {
  refusal: string | undefined;
  busy: boolean;
  onToken: (token: string, keep: boolean) => void;
}) {
  const { busy, onToken } = props;
  const [unsendable, setUnsendable] = useState(false);
  const refusal = unsendable ? "a key or token has no spaces and only ASCII" : props.refusal;
  const [token, setToken] = useState("");
  const [keep, setKeep] = useState(false);
  return (
    <main class="sign-in">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          const given = token.trim();
          setUnsendable(!bearerText.test(given));
          if (bearerText.test(given)) onToken(given, keep);
        }}
      >
        <h1>Payments gateway</h1>
        <p class="soft">
          This console is for operators: it needs an API key or a token with the scope{" "}
          <code>admin</code>.
        </p>
        <label>
          <span>API key or token</span>
          <input
            type="password"
            required
            autocomplete="off"
            spellcheck={false}
            aria-describedby="sign-in-refusal"
            aria-invalid={refusal !== undefined}
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={keep}
            onChange={({ currentTarget }) => setKeep(currentTarget.checked)}
          />
          <span>Remember it until this tab is closed</span>
        </label>
        <p id="sign-in-refusal" class="problem" role="alert" hidden={refusal === undefined}>
          {refusal && `${capital(refusal)}.`}
        </p>
        <button type="submit" class="main" disabled={busy || token.trim() === ""}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
      </form>
    </main>
  );
}
