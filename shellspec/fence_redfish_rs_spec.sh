# shellcheck shell=bash
Describe 'fence_redfish_rs'
  It 'prints its metadata'
    When run command fence_redfish_rs --action metadata
    The status should equal 0
    The output should include '<resource-agent name="fence_redfish_rs"'
    The error should equal ''
  End

  It 'does nothing without an action, as a slip of the pen must not reboot a node'
    no_action() { printf 'option=status\nip=127.0.0.1\n' | fence_redfish_rs; }
    When run no_action
    The status should equal 1
    The error should include 'action'
  End

  It 'names what is missing'
    status() { printf 'action=status\n' | fence_redfish_rs; }
    When run status
    The status should equal 1
    The error should include 'ip'
  End
End
