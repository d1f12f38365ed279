# shellcheck shell=bash
Describe 'fence_redfish_rs'
  # Nothing listens on this port of this machine.
  options() {
    printf '%s\n' "$@" ip=127.0.0.1 ipport=1 username=admin password=hunter2 | fence_redfish_rs
  }

  It 'prints its metadata'
    When run command fence_redfish_rs --action metadata
    The status should equal 0
    The output should include '<resource-agent name="fence_redfish_rs"'
    The error should equal ''
  End

  It 'prints the same under the name that it replaces'
    When run command fence_redfish -o metadata
    The status should equal 0
    The output should include '<resource-agent name='
    The error should equal ''
  End

  It 'prints its man page'
    When run command fence_redfish_rs -o manpage
    The status should equal 0
    The output should start with '.TH FENCE_REDFISH_RS 8'
    The error should equal ''
  End

  It 'prints its help'
    When run command fence_redfish_rs -h
    The status should equal 0
    The output should include '--systems-uri'
    The error should equal ''
  End

  It 'tells its version'
    When run command fence_redfish_rs --version
    The status should equal 0
    The output should start with 'fence_redfish_rs '
  End

  It 'does nothing without an action, as a slip of the pen must not reboot a node'
    no_action() { printf 'option=status\nip=127.0.0.1\n' | fence_redfish_rs; }
    When run no_action
    The status should equal 1
    The output should equal ''
    The error should include 'action'
  End

  It 'names what is missing'
    status() { printf 'action=status\n' | fence_redfish_rs; }
    When run status
    The status should equal 1
    The output should equal ''
    The error should include 'ip'
  End

  It 'checks its options without asking the BMC'
    When run options action=validate-all
    The status should equal 0
    The output should equal ''
    The error should equal ''
  End

  It 'fails each action where nobody answers, without the password in its words'
    every_action() {
      for action in on off reboot status monitor list list-status diag; do
        code=0
        options "action=$action" login_timeout=1 action_timeout=3 2>&1 || code=$?
        echo "$action: $code"
      done
    }
    When run every_action
    The status should equal 0
    The output should include 'off: 1'
    The output should include 'status: 1'
    The output should include 'monitor: 1'
    The output should include 'diag: 1'
    The output should include 'connection refused'
    The output should not include ': 0'
    The output should not include ': 2'
    The output should not include 'hunter2'
  End
End
