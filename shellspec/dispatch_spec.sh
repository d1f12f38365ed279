# shellcheck shell=bash
Describe 'the binary'
  It 'lists its programs'
    When run command tandem --list
    The status should equal 0
    The output should include 'podman-etcd'
    The output should include 'fence_redfish_rs'
  End

  It 'tells its version'
    When run command tandem --version
    The status should equal 0
    The output should start with 'tandem '
  End

  It 'is a program by its first argument too'
    When run command tandem podman-etcd meta-data
    The status should equal 0
    The output should include '<resource-agent name="podman-etcd"'
  End

  It 'says which programs there are when it is asked for another'
    When run command tandem podman-etc
    The status should not equal 0
    The error should include 'podman-etc'
  End
End
